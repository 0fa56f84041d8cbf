"""Who depends on whom, from a Packages index."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from cfbench_core.errors import UserError
from cfbench_recsys.debian_index import dependency_pairs, read_index

INDEX = """\
Package: spyder
Version: 5.4.2
Pre-Depends: python3-never (>= 1)
Depends: python3-spyder (= 5.4.2+ds-5), python3-numpy:any (>= 1.20) | python3-other,
 python3-scipy [amd64], libc6, perl:any
Description: an editor
 Depends: on nothing, this is a description

Package: python3-spyder
Depends: python3-spyder, python3-numpy-abi9, python3 (<< 3.12), make

Package: lonely
Description: depends on no_users

Package: spyder
Version: 6
Depends: python3-numpy, python3-numpy (<< 2), gcc
"""


def test_the_rule_of_debian_python_by_hand() -> None:
    one_version = INDEX.partition("\nPackage: lonely")[0]
    assert dependency_pairs(one_version.splitlines(keepends=True), "debian-python") == [
        ("python3-spyder", "python3-numpy-abi9"),
        ("spyder", "python3-numpy"),
        ("spyder", "python3-scipy"),
        ("spyder", "python3-spyder"),
    ]


def test_the_rule_of_debian_all_leaves_the_run_times_out_and_the_later_version_counts() -> None:
    assert dependency_pairs(INDEX.splitlines(keepends=True), "debian-all") == [
        ("python3-spyder", "make"),
        ("python3-spyder", "python3-numpy-abi9"),
        ("spyder", "gcc"),
        ("spyder", "python3-numpy"),
    ]


@pytest.mark.parametrize("name", ["Packages", "Packages.gz", "Packages.xz"])
def test_an_index_is_read_packed_or_not(tmp_path: Path, name: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[Path(name).suffix]
    path = tmp_path / name
    path.write_bytes(pack(INDEX.encode()))
    assert "".join(read_index(path)) == INDEX


def test_a_damaged_index_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "Packages.xz"
    path.write_bytes(lzma.compress(INDEX.encode())[:100])
    with pytest.raises(UserError, match="is no whole Packages index"):
        list(read_index(path))
    path.write_bytes(b"Package: a\n")
    with pytest.raises(UserError, match="is no whole Packages index"):
        list(read_index(path))
