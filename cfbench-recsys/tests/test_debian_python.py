"""The embedded data set and its large sister."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import pytest

from cfbench_core.component_specs import component_specs
from cfbench_core.data_files import DataAccess
from cfbench_core.data_status import verify
from cfbench_core.errors import UserError
from cfbench_recsys.datasets.debian_all import Config as AllConfig
from cfbench_recsys.datasets.debian_all import DebianAll
from cfbench_recsys.datasets.debian_python import FILES, Config, DebianPython
from cfbench_recsys.interactions import at_least

REPOSITORY = Path(__file__).resolve().parents[2]
OFFLINE = DataAccess(offline=True)


def test_the_embedded_data_set_is_as_published_and_readable() -> None:
    dataset = DebianPython(Config())
    data = dataset.load(dataset.find(OFFLINE).parameters())
    assert data.counts() == {"users": 1_685, "items": 643, "interactions": 10_604}
    assert data.about["differences"] == []
    assert data.summary()["text"] == "debian-python (1,685 packages, 643 dependencies, Debian 12.15)"
    assert data.about["released"] == "Sat, 11 Jul 2026 10:16:37 UTC"
    assert all(str(name).startswith("python3-") for name in data.item_names)
    user = data.user_ids.tolist().index("python3-pandas")
    row = data.matrix[[user]].indices
    assert {"python3-numpy", "python3-dateutil"} <= set(data.item_names[row].tolist())


def test_the_embedded_data_set_is_its_own_three_core() -> None:
    dataset = DebianPython(Config())
    matrix = dataset.load(dataset.find(OFFLINE)).matrix
    assert at_least(*matrix.nonzero(), 3).all()


def test_the_embedded_files_have_the_checksums_that_are_stated() -> None:
    spec = next(spec for spec in component_specs("cfbench_recsys", "dataset") if spec.name == "debian-python")
    assert [check.right for check in verify(spec)] == [True] * len(FILES.sha256)


def test_another_release_can_be_read_from_its_index(tmp_path: Path) -> None:
    names = [f"python3-{letter}" for letter in "abc"]
    paragraphs = [f"Package: p{number}\nDepends: {', '.join(names)}, libc6\n" for number in range(4)]
    path = tmp_path / "Packages.gz"
    path.write_bytes(gzip.compress("\n".join(paragraphs).encode()))
    dataset = DebianPython(Config(path=str(path)))
    data = dataset.load(dataset.find(OFFLINE))
    assert data.counts() == {"users": 4, "items": 3, "interactions": 12}
    assert data.about["differences"][0] == "4 users, published: 1,685"
    assert data.about["release"] == ""


def test_debian_all_documents_how_it_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path))
    with pytest.raises(UserError) as caught:
        DebianAll(AllConfig()).find(DataAccess())
    assert caught.value.lines[0] == (
        "debian-all: not found in $CFBENCH_DATA_DIR (not set), ./data or the cache."
    )
    assert (
        "python scripts/build_debian_datasets.py debian-all --output data/debian-all" in caught.value.lines[1]
    )


def test_the_script_builds_the_same_bytes_every_time_and_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = REPOSITORY / "scripts" / "build_debian_datasets.py"
    if not script.is_file():
        pytest.skip("needs the source tree: scripts/build_debian_datasets.py")
    names = ["make", "gcc", "python3-numpy"]
    index = tmp_path / "Packages"
    index.write_text(
        "\n".join(f"Package: p{n}\nDepends: {', '.join(names)}, libc6, p{n}\n" for n in range(3))
        + "\nPackage: small\nDepends: make\n"
    )
    release = tmp_path / "InRelease"
    release.write_text(
        "Hash: SHA256\n\nOrigin: Debian\nSuite: oldstable\nVersion: 12.9\nCodename: bookworm\n"
        "Date: Sat, 11 Jan 2025 09:00:00 UTC\nDescription: Debian 12.9\n"
    )
    builder = importlib.util.module_from_spec(
        spec := importlib.util.spec_from_file_location("build_debian_datasets", script)  # type: ignore[arg-type]
    )
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(builder)
    for out in ("one", "data/debian-all"):
        arguments = [
            "debian-all",
            "--output",
            str(tmp_path / out),
            "--index",
            str(index),
            "--release",
            str(release),
        ]
        assert builder.main(arguments) == 0
    built = tmp_path / "data" / "debian-all" / "debian-all.csv.gz"
    assert built.read_bytes() == (tmp_path / "one" / "debian-all.csv.gz").read_bytes()
    assert gzip.decompress(built.read_bytes()).decode().splitlines()[:2] == ["package,dependency", "p0,gcc"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    dataset = DebianAll(AllConfig())
    data = dataset.load(dataset.find(OFFLINE))
    assert data.counts() == {"users": 3, "items": 3, "interactions": 9}
    assert (data.about["release"], data.about["released"]) == ("Debian 12.9", "Sat, 11 Jan 2025 09:00:00 UTC")
    assert builder.main(["debian-all", "--output", str(tmp_path), "--index", str(tmp_path / "nowhere")]) == 2


def test_debian_all_is_as_published_where_it_was_built() -> None:
    dataset = DebianAll(AllConfig())
    try:
        source = dataset.find(OFFLINE)
    except UserError as error:
        pytest.skip(str(error))
    data = dataset.load(source)
    assert data.counts() == {"users": 24_047, "items": 9_404, "interactions": 172_112}
