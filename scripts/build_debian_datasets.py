"""Builds the data sets ``debian-python`` and ``debian-all`` from Debian's package index.

    apt-get update
    python scripts/build_debian_datasets.py debian-python          # into the package cfbench_recsys
    python scripts/build_debian_datasets.py debian-all --output data/debian-all

Reads the index that ``apt-get update`` left on this machine (or one named with ``--index``, with its
``Release`` file), applies the rule of ``cfbench_recsys/debian_index.py``, and writes ``<id>.csv.gz``
(package, dependency) and ``<id>.json`` (release, rule, counts). The same index gives the same content.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_recsys.debian_index import CORE, RULES, dependency_pairs, read_index
from cfbench_recsys.interactions import index_ids, k_core

PACKAGE_DATA = Path(__file__).resolve().parents[1] / "cfbench-recsys" / "src" / "cfbench_recsys" / "data"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("id", choices=sorted(RULES))
    parser.add_argument(
        "--output", type=Path, default=PACKAGE_DATA, help="folder; default: where the package keeps data"
    )
    parser.add_argument(
        "--index", type=Path, help="a Packages file (plain, .gz, .xz); default: apt's, on this machine"
    )
    parser.add_argument("--release", type=Path, help="the Release or InRelease file that belongs to --index")
    parser.add_argument("--codename", default="bookworm", help="the release to take of those that apt knows")
    chosen = parser.parse_args(arguments)
    try:
        print(build(chosen.id, chosen.output, chosen.index, chosen.release, chosen.codename))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(id: str, out: Path, index: Path | None, release: Path | None, codename: str = "bookworm") -> str:
    """Writes a data set; returns a line for people."""
    if index is not None:
        lines: Iterable[str] = read_index(index)
    else:
        lines, release = _of_apt(codename)
    pairs = core(dependency_pairs(lines, id))
    about = describe(id, pairs, release_fields(release.read_text(encoding="utf-8")) if release else {})
    write_atomically(out / f"{id}.csv.gz", compressed(pairs))
    write_atomically(out / f"{id}.json", json.dumps(about, indent=2) + "\n")
    counts = about["counts"]
    size = (out / f"{id}.csv.gz").stat().st_size
    return f"{out / id}.csv.gz: {counts}, {about['release']}, {size:,} bytes"


def core(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs in the recursive 3-core, in their order."""
    _, users = index_ids([package for package, _ in pairs])
    _, items = index_ids([dependency for _, dependency in pairs])
    kept = k_core(users, items, CORE)
    return [pair for pair, stays in zip(pairs, kept, strict=True) if stays]


def describe(id: str, pairs: Sequence[tuple[str, str]], release: dict[str, str]) -> dict[str, object]:
    """``<id>.json``."""
    version, codename = release.get("Version", ""), release.get("Codename", "")
    return {
        "id": id,
        "release": f"{release['Origin']} {version}" if release else "",
        "codename": codename,
        "released": release.get("Date", ""),
        "component": "main",
        "architecture": "amd64",
        "rule": RULES[id],
        "counts": {
            "users": len({package for package, _ in pairs}),
            "items": len({dependency for _, dependency in pairs}),
            "interactions": len(pairs),
        },
        "licence": "Names of packages and who depends on whom: facts, free to ship.",
    }


def release_fields(text: str) -> dict[str, str]:
    """The one-line fields at the top of a Release file."""
    return dict(re.findall(r"^(Origin|Version|Codename|Date): *(.+?) *$", text, flags=re.MULTILINE))


def compressed(pairs: Iterable[tuple[str, str]]) -> bytes:
    """CSV, gzipped without a time or a name in it."""
    text = "package,dependency\n" + "".join(f"{package},{dependency}\n" for package, dependency in pairs)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as packed:
        packed.write(text.encode())
    return buffer.getvalue()


def _of_apt(codename: str) -> tuple[list[str], Path]:
    """The index of a release's main component as apt keeps it here, and its InRelease file."""
    wanted = ["Created-By: Packages", f"Codename: {codename}", "Component: main", "Architecture: amd64"]
    listed = _run("apt-get", "indextargets", "--format", "$(FILENAME)", *wanted).split()
    if not listed:
        raise UserError(
            f"apt knows no index of {codename} main amd64 here; run 'apt-get update', or give --index"
        )
    path = Path(listed[0])
    release = path.with_name(path.name.partition("_main_")[0] + "_InRelease")
    return _run("/usr/lib/apt/apt-helper", "cat-file", str(path)).splitlines(keepends=True), release


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise UserError(
            f"{command[0]} is not here; on a system other than Debian name an index with --index"
        ) from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"{' '.join(command[:2])}: {error.stderr.strip()}") from None


if __name__ == "__main__":
    raise SystemExit(main())
