"""``debian-all``: Debian packages as users, the packages that they depend on as items.

Too large for the wheel, but quickly built from Debian's package index by
``scripts/build_debian_datasets.py``, or read from a ``Packages`` index itself; the rule is in
``debian_index.py``. Debian 12 main: 24,047 packages, 9,404 dependencies, 172,112 interactions.
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
    id="recsys/dataset/debian-all",
    summary="Debian packages and all they depend on; built from Debian's package index",
    target=f"{__name__}:DebianAll",
    config=f"{__name__}:Config",
    details={
        "files": f"{__name__}:FILES",
        "licence": "package metadata: facts, free to ship",
        "embedded": False,
        "counts": (24_047, 9_404, 172_112),
    },
)

FILES = DataFiles(
    id="debian-all",
    suite="recsys",
    forms=(
        Form(files=("debian-all.csv.gz",), extras=("debian-all.json",)),
        Form(files=("Packages.xz",)),
        Form(files=("Packages.gz",)),
        Form(files=("Packages",)),
    ),
    licence="package metadata: facts, free to ship",
    page="https://www.debian.org/distrib/packages",
    how=(
        "Build it on Debian, after 'apt-get update', with 'python scripts/build_debian_datasets.py debian-all"
        " --output data/debian-all' (in the source tree)"
    ),
)
EXPECTED = (24_047, 9_404, 172_112)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help("a built debian-all.csv.gz, or a Packages index of Debian")
    ] = None


class DebianAll:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.datasets.debian import load_debian

        return load_debian(Source.of(source), FILES, "Debian packages and their dependencies", EXPECTED)
