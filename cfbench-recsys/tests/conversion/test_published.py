"""Published weights: downloaded, read as data, and compared with what is known of them."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.numpy import load_file

from cfbench_core.errors import UserError
from cfbench_recsys.conversion import published
from cfbench_recsys.conversion.command import command

NAME = "lxr-mf-ml-1m"
REPOSITORY = Path(__file__).parents[3]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
WEIGHTS = DATA.parent / "reference" / "golden_ml1m_mf" / "two_tower_mf_32.safetensors"

pytestmark = pytest.mark.skipif(
    not (WEIGHTS.exists() and (DATA / "recsys" / "ml-1m.parquet").exists()),
    reason="no ml-1m.parquet, or no golden_ml1m_mf in the data folder (CFBENCH_DATA_DIR)",
)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a server on 127.0.0.1 that stands for the one of LXR's authors."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        known = published.PUBLISHED[NAME]
        file = dataclasses.replace(known.file, url=f"http://127.0.0.1:{running.server_port}/mlp.pt")
        monkeypatch.setattr(published, "PUBLISHED", {NAME: dataclasses.replace(known, file=file)})
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
        yield folder
        running.shutdown()
        thread.join(timeout=10)


def checkpoint(folder: Path, change: float = 0.0) -> None:
    """The weights as LXR's code saves them, one of them changed."""
    arrays = {name: torch.from_numpy(array.copy()) for name, array in load_file(WEIGHTS).items()}
    arrays["item.weight"][3, 100] += change
    torch.save(
        {f"{ours.replace('profile', 'users_fc').replace('item', 'items_fc')}": tensor for ours, tensor in arrays.items()},
        folder / "mlp.pt",
    )  # fmt: skip


def converted(out: Path, *further: str, dataset: str = "ml-1m") -> Result:
    arguments = [NAME, "--data", dataset, "--data-dir", str(DATA / "recsys"), "--output", str(out), *further]
    return CliRunner().invoke(command, arguments)


def test_the_published_weights_are_the_reference(server: Path, tmp_path: Path) -> None:
    checkpoint(server)
    done = converted(tmp_path / "w.safetensors")
    assert done.exit_code == 0, done.output
    assert "the two-tower MF of LXR" in done.output and "not verified" not in done.output
    expected, found = load_file(WEIGHTS), load_file(tmp_path / "w.safetensors")
    assert expected.keys() == found.keys()
    assert all(np.array_equal(found[name], array) for name, array in expected.items())


def test_weights_without_a_known_checksum_are_said_not_to_be_verified(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(server, change=0.5)
    unknown = dataclasses.replace(published.PUBLISHED[NAME], weights_sha256=None)
    monkeypatch.setattr(published, "PUBLISHED", {NAME: unknown})
    done = converted(tmp_path / "w.safetensors")
    assert done.exit_code == 0, done.output
    assert "remark: not verified: no checksum of these weights is known" in done.output


def test_other_weights_are_refused_and_an_earlier_file_stays(server: Path, tmp_path: Path) -> None:
    checkpoint(server, change=0.5)
    (tmp_path / "w.safetensors").write_bytes(b"earlier")
    done = converted(tmp_path / "w.safetensors")
    assert isinstance(done.exception, UserError)
    assert "the weights differ from those that were published" in str(done.exception)
    assert (tmp_path / "w.safetensors").read_bytes() == b"earlier"


def test_a_web_page_in_place_of_the_file_is_refused(server: Path, tmp_path: Path) -> None:
    (server / "mlp.pt").write_text("<!DOCTYPE html><html><body>Please log in</body></html>")
    done = converted(tmp_path / "w.safetensors")
    assert isinstance(done.exception, UserError)
    assert not (tmp_path / "w.safetensors").exists()


@pytest.mark.parametrize("damage", ["truncated", "other weights", "another model"])
def test_a_wrong_file_is_not_read_again_from_the_cache(server: Path, tmp_path: Path, damage: str) -> None:
    checkpoint(server, change=0.5 if damage == "other weights" else 0.0)
    if damage == "truncated":
        whole = (server / "mlp.pt").read_bytes()
        (server / "mlp.pt").write_bytes(whole[: len(whole) // 2])
    elif damage == "another model":
        torch.save({"gcn.weight": torch.zeros(2, 2)}, server / "mlp.pt")
    done = converted(tmp_path / "w.safetensors")
    assert isinstance(done.exception, UserError)
    assert "the downloaded file was discarded; the same command downloads it again" in str(done.exception)
    checkpoint(server)
    done = converted(tmp_path / "w.safetensors")
    assert done.exit_code == 0, done.exception


def test_a_full_disk_does_not_cost_the_download(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise UserError("the disk is full")

    checkpoint(server)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module("cfbench_recsys.conversion.convert"), "write_atomically", full)
        assert str(converted(tmp_path / "w.safetensors").exception) == "the disk is full"
    (server / "mlp.pt").unlink()
    assert converted(tmp_path / "w.safetensors").exit_code == 0


def test_another_data_set_is_refused_before_the_download(server: Path, tmp_path: Path) -> None:
    (server / "mlp.pt").unlink(missing_ok=True)
    done = converted(tmp_path / "w.safetensors", dataset="debian-python")
    assert str(done.exception) == f"--data debian-python: {NAME} was trained on ml-1m; give --data ml-1m"


@pytest.mark.parametrize("mistake", ["name of the output", "recommender", "data"])
def test_a_mistake_in_the_command_does_not_cost_the_download(
    server: Path, tmp_path: Path, mistake: str
) -> None:
    checkpoint(server)
    assert converted(tmp_path / "w.safetensors").exit_code == 0
    (server / "mlp.pt").unlink()
    failed = {
        "name of the output": lambda: converted(tmp_path / "w.pt"),
        "recommender": lambda: converted(tmp_path / "w.safetensors", "--recommender", "vae"),
        "data": lambda: converted(tmp_path / "w.safetensors", dataset="debian-python"),
    }[mistake]()
    assert isinstance(failed.exception, UserError)
    assert "discarded" not in str(failed.exception)
    assert converted(tmp_path / "w.safetensors").exit_code == 0
