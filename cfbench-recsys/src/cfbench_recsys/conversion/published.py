"""Recommenders whose weights the authors of LXR published, and on which Refined fidelity's tables rest.

The authors state neither sizes nor checksums of the files. Each is therefore read as data, must have the arrays and the
number of items of its recommender, and, where the weights are known here, must give exactly these weights. Whether a
file is damaged is seen from the file alone, so that a mistake in the command does not cost the download.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cfbench_core.data_files import DataAccess, cache_folder
from cfbench_core.data_types import DataFile
from cfbench_core.downloads import download
from cfbench_core.errors import UserError
from cfbench_recsys.conversion.formats import format_of
from cfbench_recsys.conversion.trained_models import read_model
from cfbench_recsys.recommenders.training import State

PAGE = "https://github.com/DeltaLabTLV/LXR"
DRIVE = "https://drive.usercontent.google.com/download?export=download&id="


@dataclass(frozen=True)
class Published:
    """A published file.

    Attributes:
        file: as its authors publish it.
        dataset: that it was trained on.
        recommender: of cfbench, that takes its weights.
        weights_sha256: the digest of the converted weights; None: not known.
    """

    file: DataFile
    dataset: str
    recommender: str
    weights_sha256: str | None = None


def _checkpoint(name: str, id: str) -> DataFile:
    return DataFile(
        name=name, url=f"{DRIVE}{id}", licence="not stated; by the authors of LXR, WWW 2024", page=PAGE
    )


PUBLISHED: Mapping[str, Published] = {
    "lxr-mf-ml-1m": Published(
        _checkpoint("MLP1_ML1M_0.0076_256_7.pt", "1xRJtuKMYLwfGXddOcLDbHXiBuCZxIHjP"),
        "ml-1m",
        "mf",
        weights_sha256="282235a68bd1fd8cd10b2926a888d7e6f240510d5a678b150c47b217c8e09c45",
    ),
    "lxr-vae-ml-1m": Published(
        _checkpoint("VAE_ML1M_0.0007_128_10.pt", "1agV0XA1l-aXqeddKF2vq5JDT_LrJk25o"),
        "ml-1m",
        "vae",
    ),
    "lxr-mf-pinterest": Published(
        _checkpoint("MLP_Pinterest_0.0062_512_21_0.pt", "1kg0McJUfZWKiPt-5AG7Mhpj3xarUrovk"),
        "pinterest",
        "mf",
    ),
    "lxr-vae-pinterest": Published(
        _checkpoint("VAE_Pinterest_12_18_0.0001_256.pt", "1n8DrGHdrLOqz-w-YPOXkVP1XMXjm3fku"),
        "pinterest",
        "vae",
    ),
    "lxr-mf-yahoo": Published(
        _checkpoint("MLP2_Yahoo_0.0083_128_1.pt", "1fB8M__QxsAlW8oq1edgMH2DMPIE7nQjT"),
        "yahoo-music",
        "mf",
    ),
    "lxr-vae-yahoo": Published(
        _checkpoint("VAE_Yahoo_0.0001_128_13.pt", "1x-0Jz2uGwg8z2etXyCFhDNgxVXQfFG1i"),
        "yahoo-music",
        "vae",
    ),
}

UNVERIFIED = "not verified: no checksum of these weights is known, only their form was checked"

DISCARDED = "the downloaded file was discarded; the same command downloads it again"
"""Without a checksum of the file, damage shows only when it is converted."""


def weights_digest(state: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, shapes and float32 values, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name], dtype="<f4")
        digest.update(f"{name} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def fetch(name: str, access: DataAccess) -> Path:
    """The file of a published model, in the user's cache; downloaded where it is not there.

    Raises:
        UserError: if it cannot be downloaded.
    """
    file = PUBLISHED[name].file
    if access.notify is not None:
        access.notify(f"{name}: licence {file.licence}; {file.page}")
    return download(file, cache_folder() / name, access.progress)


def check_dataset(name: str, dataset: str) -> None:
    """The weights are for the users and items of one data set.

    Raises:
        UserError: if ``dataset`` is another.
    """
    if dataset != PUBLISHED[name].dataset:
        raise UserError(
            f"--data {dataset}: {name} was trained on {PUBLISHED[name].dataset}; give --data {PUBLISHED[name].dataset}"
        )


def check_file(name: str, path: Path) -> None:
    """The file of a published model must hold a model of its kind, with the known weights where they are known.

    Raises:
        UserError: if it does not; the file is deleted then, so that the same command downloads it again.
    """
    try:
        state = _state(path, PUBLISHED[name].recommender)
        expected, found = PUBLISHED[name].weights_sha256, weights_digest(state)
        if expected is not None and found != expected:
            raise UserError(
                f"{path}: the weights differ from those that were published (SHA-256 {found[:12]}..., expected "
                f"{expected[:12]}...)"
            )
    except UserError as error:
        path.unlink(missing_ok=True)
        raise UserError(*error.lines, f"{name}: {DISCARDED}") from None


def _state(path: Path, recommender: str) -> State:
    """The weights of a file, in its own order of items."""
    model = read_model(path)
    form = format_of(model, recommender, str(path))
    for name, axes in form.axes.items():
        if model.arrays[name].ndim != len(axes):
            raise UserError(
                f"{path}: {name} must have {len(axes)} axes, has the shape {model.arrays[name].shape}"
            )
    return form.state(model.arrays)
