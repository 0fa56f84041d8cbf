"""``debian-python``: Debian packages as users, the Python libraries (python3-*) that they depend on as items.

Embedded in the wheel: small, real, free to ship, and its names are readable. Built from Debian's package
index by ``scripts/build_debian_datasets.py``; the rule is in ``debian_index.py``. Debian 12 main: 1,685
packages, 643 dependencies, 10,604 interactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/debian-python",
    summary="Debian packages and the Python libraries they depend on; embedded, names are readable",
    target=f"{__name__}:DebianPython",
    config=f"{__name__}:Config",
    details={
        "files": f"{__name__}:FILES",
        "licence": "package metadata: facts, free to ship",
        "embedded": True,
        "counts": (1_685, 643, 10_604),
    },
)

FILES = DataFiles(
    id="debian-python",
    suite="recsys",
    forms=(
        Form(files=("debian-python.csv.gz",), extras=("debian-python.json",)),
        Form(files=("Packages.xz",)),
        Form(files=("Packages.gz",)),
        Form(files=("Packages",)),
    ),
    package="cfbench_recsys",
    licence="package metadata: facts, free to ship",
    page="https://www.debian.org/distrib/packages",
    sha256={
        "debian-python.csv.gz": "a97a243dd1e12d17bd818f34a8ad76be84fefddc3f392b4ae546a21dc8b85630",
        "debian-python.json": "6584352e8ebd69581338274e0bad82b415aab41757e713b795ca85376c0bb956",
    },
)
EXPECTED = (1_685, 643, 10_604)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help("another release: a built debian-python.csv.gz, or a Packages index")
    ] = None


class DebianPython:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.datasets.debian import load_debian

        return load_debian(Source.of(source), FILES, "Debian packages and their Python libraries", EXPECTED)
