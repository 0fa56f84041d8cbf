"""What ``debian-python`` and ``debian-all`` have in common: a built table of pairs, and where it came from.

``<id>.csv.gz`` has the columns ``package,dependency``; ``<id>.json`` in the same folder says of which release. Written
by ``scripts/build_debian_datasets.py``, with the rule of ``debian_index.py``. A plain ``Packages`` index is
read too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.data_files import DataFiles, Source
from cfbench_core.errors import UserError
from cfbench_core.user_files import need_column

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

NOUNS = {"user": "package", "users": "packages", "item": "dependency", "items": "dependencies"}
INDICES = ("Packages.xz", "Packages.gz", "Packages")


def load_debian(source: Source, files: DataFiles, title: str, expected: tuple[int, int, int]) -> Interactions:
    """Packages as users, dependencies as items."""
    from cfbench_recsys.debian_index import CORE, RULES
    from cfbench_recsys.interactions import from_pairs

    index = next((source.paths[name] for name in INDICES if name in source.paths), None)
    users, items = (
        _built(source.paths[f"{files.id}.csv.gz"]) if index is None else _from_index(index, files.id)
    )
    known = _metadata(source.paths.get(f"{files.id}.json"))
    about = {
        "title": title,
        "nouns": NOUNS,
        "because": "it depends on",
        "licence": files.licence,
        "page": files.page,
        "release": known.get("release", ""),
        "released": known.get("released", ""),
        "rule": RULES[files.id],
    }
    return from_pairs(files.id, users, items, core=CORE, about=about, expected=expected)


def _built(path: Path) -> tuple[list[str], list[str]]:
    from cfbench_recsys.reading import identifiers, read_table

    table = read_table(path, separator=",", header=True)
    columns = [need_column(table.columns, path, name, (), "pairs") for name in ("package", "dependency")]
    return identifiers(table, columns[0], path), identifiers(table, columns[1], path)


def _from_index(path: Path, rule: str) -> tuple[list[str], list[str]]:
    from cfbench_recsys.debian_index import dependency_pairs, read_index

    pairs = dependency_pairs(read_index(path), rule)
    return [package for package, _ in pairs], [dependency for _, dependency in pairs]


def _metadata(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: is not JSON ({error})") from None
    return dict(known)
