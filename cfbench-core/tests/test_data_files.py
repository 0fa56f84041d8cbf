"""Where data files are looked for, in which order, and what is said when they are nowhere."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from file_server import Site, serving

from cfbench_core import downloads
from cfbench_core.data_files import DataAccess, DataFile, DataFiles, Form, Source, fetch, locate, search_path
from cfbench_core.data_status import status, statuses, verify
from cfbench_core.errors import UserError
from cfbench_core.registry import Component, Plugin, Registry
from cfbench_core.specs import ComponentSpec

RATINGS = b"1::10::5::0\n"
FILES = DataFiles(
    id="ml-x",
    suite="recsys",
    forms=(
        Form(files=("ratings.dat",), extras=("movies.dat",)),
        Form(files=("ml-x.parquet",), extras=("ML_X.movies.dat",)),
    ),
    downloads=(
        DataFile(
            name="ml-x.zip",
            url="http://127.0.0.1:9/ml-x.zip",
            bytes=5_917_549,
            licence="GroupLens licence",
            page="https://example.org/ml-x",
            members=("ml-x/ratings.dat", "ml-x/movies.dat"),
        ),
    ),
    licence="GroupLens licence",
    page="https://example.org/ml-x",
)
BY_HAND = DataFiles(
    id="built",
    suite="recsys",
    forms=(Form(files=("built.csv.gz",)),),
    how="Build it with 'make built'",
)


@pytest.fixture(autouse=True)
def empty_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data directory but those below ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def put(path: Path, content: bytes = RATINGS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_file_in_the_data_folder_is_found_with_its_fingerprint(tmp_path: Path) -> None:
    put(tmp_path / "data" / "ml-x" / "ratings.dat")
    source = DataAccess(offline=True).find(FILES)
    assert source.paths == {"ratings.dat": Path("data/ml-x/ratings.dat")}
    assert source.where == "./data"
    assert source.sha256 == {"ratings.dat": hashlib.sha256(RATINGS).hexdigest()}


def test_a_name_with_a_folder_is_found_below_the_folder_of_the_suite(tmp_path: Path) -> None:
    """A collection that others made: not one folder for each data set, and names that are not the ids."""
    files = DataFiles(id="adult", suite="tabular", forms=(Form(files=("datasets/Census.csv.gz",)),))
    put(tmp_path / "data" / "tabular" / "Census.csv.gz")
    assert locate(files) is None
    path = put(tmp_path / "data" / "tabular" / "datasets" / "Census.csv.gz")
    found = locate(files)
    assert found is not None and [p.absolute() for p in found.paths.values()] == [path]


def test_places_are_searched_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(tmp_path / "environment"))
    roots = [tmp_path / "given", tmp_path / "environment", tmp_path / "data", tmp_path / "cache" / "data"]
    assert [place.folder.absolute() for place in search_path(tmp_path / "given")] == roots
    names = ["--data-dir " + str(tmp_path / "given"), "$CFBENCH_DATA_DIR", "./data", "the cache"]
    for root, name in reversed(list(zip(roots, names, strict=True))):
        put(root / "recsys" / "ml-x" / "ratings.dat")
        found = locate(FILES, None, tmp_path / "given")
        assert found is not None and found.where == name


@pytest.mark.parametrize("folder", ["ml-x", "recsys/ml-x", "recsys", "."])
def test_a_file_that_says_whose_it_is_may_lie_in_any_of_four_folders(tmp_path: Path, folder: str) -> None:
    put(tmp_path / "data" / folder / "ml-x.parquet")
    put(tmp_path / "data" / folder / "ML_X.movies.dat")
    found = locate(FILES)
    assert found is not None and set(found.paths) == {"ml-x.parquet", "ML_X.movies.dat"}


@pytest.mark.parametrize("folder", ["recsys", "."])
def test_anybodys_ratings_are_not_taken_for_ours(tmp_path: Path, folder: str) -> None:
    put(tmp_path / "data" / folder / "ratings.dat")
    assert locate(FILES) is None


def test_the_first_form_wins_and_extras_come_along_if_they_are_there(tmp_path: Path) -> None:
    put(tmp_path / "data" / "ml-x" / "ml-x.parquet")
    put(tmp_path / "data" / "ml-x" / "ratings.dat")
    put(tmp_path / "data" / "ml-x" / "movies.dat")
    found = locate(FILES)
    assert found is not None and set(found.paths) == {"ratings.dat", "movies.dat"}


def test_a_path_in_the_configuration_comes_before_all_places(tmp_path: Path) -> None:
    put(tmp_path / "data" / "ml-x" / "ratings.dat")
    own = put(tmp_path / "mine" / "mine.parquet")
    movies = put(tmp_path / "mine" / "ML_X.movies.dat")
    found = locate(FILES, own)
    assert found == Source({"ml-x.parquet": own, "ML_X.movies.dat": movies}, "the configuration")
    put(tmp_path / "mine" / "ratings.dat")
    in_folder = locate(FILES, tmp_path / "mine")
    assert in_folder is not None and set(in_folder.paths) == {"ratings.dat"}


def test_a_path_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    wrong = put(tmp_path / "notes.txt")
    for path, words in (
        (tmp_path / "nowhere.dat", "no such file (ml-x: ratings.dat or ml-x.parquet)"),
        (tmp_path / "empty", "holds no ml-x: ratings.dat or ml-x.parquet"),
        (wrong, "ml-x cannot be read from this file; it must be like ratings.dat or ml-x.parquet"),
    ):
        with pytest.raises(UserError) as caught:
            DataAccess().find(FILES, path)
        assert caught.value.lines == (f"{path}: {words}",)


def test_offline_and_nowhere_says_where_it_looked_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError) as caught:
        DataAccess(offline=True).find(FILES)
    assert caught.value.lines == (
        "ml-x: not found in $CFBENCH_DATA_DIR (not set), ./data or the cache, "
        "and --offline forbids downloading.",
        "      Get it with 'cfbench data fetch ml-x' (6 MB, GroupLens licence), "
        "or put ratings.dat or ml-x.parquet into ./data/ml-x/.",
    )
    monkeypatch.setenv("CFBENCH_DATA_DIR", "/nowhere")
    with pytest.raises(
        UserError, match=r"not found in --data-dir d, \$CFBENCH_DATA_DIR, \./data or the cache"
    ):
        DataAccess(Path("d"), offline=True).find(FILES)


def test_what_cannot_be_downloaded_says_how_to_get_it() -> None:
    with pytest.raises(UserError) as caught:
        DataAccess().find(BY_HAND)
    assert caught.value.lines == (
        "built: not found in $CFBENCH_DATA_DIR (not set), ./data or the cache.",
        "       Build it with 'make built', or put built.csv.gz into ./data/built/.",
    )
    with pytest.raises(UserError, match=r"built: cannot be downloaded\. Build it with 'make built'"):
        fetch(BY_HAND, DataAccess())


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        zipped.writestr("ml-x/ratings.dat", RATINGS)
        zipped.writestr("ml-x/movies.dat", "10::Heat (1995)::Action\n")
        zipped.writestr("ml-x/README", "terms")
    return content.getvalue()


def downloadable(url: str, content: bytes, *, checksum: bool = True) -> DataFiles:
    file = DataFile(
        name="ml-x.zip",
        url=url,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest() if checksum else None,
        licence="GroupLens licence",
        page="https://example.org/ml-x",
        members=("ml-x/ratings.dat", "ml-x/movies.dat"),
    )
    return DataFiles(
        id="ml-x",
        suite="recsys",
        forms=FILES.forms,
        downloads=(file,),
        licence=file.licence,
        page=file.page,
    )


def test_a_download_is_unpacked_recorded_and_found_the_next_time(tmp_path: Path) -> None:
    content = archive()
    reported: list[str] = []
    with serving(Site(content)) as site:
        files = downloadable(site.url, content)
        source = DataAccess(notify=reported.append).find(files)
        again = DataAccess(notify=reported.append, offline=True).find(files)
        assert len(site.requests) == 1
    folder = tmp_path / "cache" / "data" / "ml-x"
    assert source.paths == again.paths == {name: folder / name for name in ("ratings.dat", "movies.dat")}
    assert reported == ["ml-x: GroupLens licence. Terms: https://example.org/ml-x"]
    assert (folder / "licence.txt").read_text() == reported[0] + "\n"
    record = json.loads((folder / "source.json").read_text())
    assert record["downloads"]["ml-x.zip"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert record["downloads"]["ml-x.zip"]["checked"] == "sha256 and size checked"
    assert record["files"]["ratings.dat"] == {
        "bytes": len(RATINGS),
        "sha256": hashlib.sha256(RATINGS).hexdigest(),
    }
    assert not (folder / "ml-x.zip").exists()


def test_an_interrupted_unpacking_leaves_no_form_without_its_extras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive()
    with serving(Site(content)) as site, monkeypatch.context() as patch:
        files = downloadable(site.url, content)
        patch.setattr(downloads, "sync", FailsAt(2))  # of the archive and two members
        with pytest.raises(UserError, match="the disk is full"):
            fetch(files, DataAccess())
        assert locate(files) is None
        patch.setattr(downloads, "sync", FailsAt(9))
        assert [*DataAccess().find(files).paths] == ["ratings.dat", "movies.dat"]
        assert len(site.requests) == 1


class FailsAt:
    """Finds the disk full after so many files."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, path: Path) -> None:
        self.count -= 1
        if self.count < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_of_two_that_fetch_at_once_the_second_waits_and_finds_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive()
    both, extract_member = threading.Barrier(2), downloads._extract_member

    def meeting(*arguments: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        extract_member(*arguments)

    monkeypatch.setattr(downloads, "_extract_member", meeting)
    with serving(Site(content)) as site, ThreadPoolExecutor(2) as threads:
        files = downloadable(site.url, content)
        found = [threads.submit(DataAccess().find, files) for _ in range(2)]
        first, second = (one.result() for one in found)
    assert first == second and [*first.paths] == ["ratings.dat", "movies.dat"]
    assert both.broken and len(site.requests) == 1


def test_the_licence_is_shown_once_also_when_the_download_broke(tmp_path: Path) -> None:
    content = archive()
    reported: list[str] = []
    with serving(Site(content, statuses=[404])) as site:
        files = downloadable(site.url, content)
        with pytest.raises(UserError):
            fetch(files, DataAccess(notify=reported.append))
        fetch(files, DataAccess(notify=reported.append))
    assert len(reported) == 1


def test_a_missing_checksum_is_said(tmp_path: Path) -> None:
    content = archive()
    reported: list[str] = []
    with serving(Site(content)) as site:
        files = downloadable(site.url, content, checksum=False)
        folder = fetch(files, DataAccess(tmp_path / "given", notify=reported.append))
    assert folder == tmp_path / "given" / "ml-x"
    assert reported[1:] == ["ml-x.zip: only its size was checked (no sha256 is known)."]


def test_a_failed_download_says_how_to_do_without(tmp_path: Path) -> None:
    with serving(Site(b"", statuses=[404])) as site:
        files = downloadable(site.url, archive())
        with pytest.raises(UserError) as caught:
            DataAccess().find(files)
    assert caught.value.lines == (
        f"{site.url}: the server answers 404 Not Found",
        "Or get ml-x.zip yourself from https://example.org/ml-x, "
        "and put ratings.dat or ml-x.parquet into ./data/ml-x/.",
    )


def test_downloads_go_into_the_directory_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive()
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(tmp_path / "mine"))
    with serving(Site(content)) as site:
        assert fetch(downloadable(site.url, content), DataAccess()) == tmp_path / "mine" / "ml-x"


def test_a_source_survives_the_way_to_another_process(tmp_path: Path) -> None:
    put(tmp_path / "data" / "ml-x" / "ratings.dat")
    source = DataAccess(offline=True).find(FILES)
    parameters = json.loads(json.dumps(source.parameters()))
    there = Source.of(parameters)
    assert there.paths == {"ratings.dat": tmp_path / "data" / "ml-x" / "ratings.dat"}
    assert there.sha256 == source.sha256
    assert Source.of(source) is source


def embedded_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> DataFiles:
    put(folder / "carrier" / "__init__.py", b"")
    put(folder / "carrier" / "data" / "tiny.csv.gz")
    monkeypatch.syspath_prepend(str(folder))
    return DataFiles(
        id="tiny", suite="recsys", forms=(Form(files=("tiny.csv.gz",)),), package="carrier", licence="free"
    )


def test_an_embedded_data_set_is_named_relative_to_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = embedded_package(tmp_path, monkeypatch)
    put(tmp_path / "data" / "tiny" / "tiny.csv.gz", b"somebody's")
    source = DataAccess(offline=True).find(files)
    assert source.paths["tiny.csv.gz"] == tmp_path / "carrier" / "data" / "tiny.csv.gz"
    parameters = source.parameters()
    assert parameters["paths"] == {"tiny.csv.gz": "data/tiny.csv.gz"}
    assert Source.of(parameters).paths == source.paths


def test_an_embedded_data_set_that_was_lost_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = embedded_package(tmp_path, monkeypatch)
    (tmp_path / "carrier" / "data" / "tiny.csv.gz").unlink()
    with pytest.raises(UserError, match=r"tiny: .* lacks tiny\.csv\.gz\. Install carrier again"):
        DataAccess().find(files)


def spec_of(files: DataFiles | None, name: str, **details: object) -> ComponentSpec:
    known = details if files is None else {"files": files, **details}
    return ComponentSpec(id=f"recsys/dataset/{name}", summary="", target="a:B", details=known)


def test_statuses_say_where_each_data_set_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [
        spec_of(FILES, "ml-x"),
        spec_of(BY_HAND, "built"),
        spec_of(embedded_package(tmp_path, monkeypatch), "tiny"),
        spec_of(None, "iris", embedded=True, licence="CC BY 4.0"),
        spec_of(None, "file", how="named in the configuration: path: ratings.csv"),
    ]
    components = tuple(Component(spec, "cfbench-x", "1") for spec in specs)
    registry = Registry([Plugin("x", "cfbench-x", "1", "x", components)])
    found = {line.id: line for line in statuses(registry)}
    assert {id: line.state for id, line in found.items()} == {
        "ml-x": "downloadable",
        "built": "by hand",
        "tiny": "embedded",
        "iris": "embedded",
        "file": "by hand",
    }
    assert found["ml-x"].where == "Get it with 'cfbench data fetch ml-x' (6 MB, GroupLens licence)"
    assert found["ml-x"].bytes == 5_917_549
    assert found["built"].where == "Build it with 'make built'"
    assert found["tiny"].bytes == len(RATINGS)
    assert found["iris"].licence == "CC BY 4.0"
    put(tmp_path / "data" / "ml-x" / "ratings.dat")
    there = status(specs[0])
    assert (there.state, there.where, there.bytes) == ("found", "data/ml-x", len(RATINGS))


def test_verifying_compares_with_what_was_recorded(tmp_path: Path) -> None:
    content = archive()
    with serving(Site(content)) as site:
        files = downloadable(site.url, content)
        folder = fetch(files, DataAccess(tmp_path / "data"))
    spec = spec_of(files, "ml-x")
    assert {check.path.name: check.right for check in verify(spec)} == {
        "ratings.dat": True,
        "movies.dat": True,
    }
    put(folder / "ratings.dat", b"changed")
    checks = {check.path.name: check for check in verify(spec)}
    assert checks["ratings.dat"].right is False
    assert "sha256 differs: recorded when it was fetched" in checks["ratings.dat"].text
    (folder / "source.json").write_text("{")
    with pytest.raises(UserError, match=r"source\.json: is damaged"):
        verify(spec)
    (folder / "source.json").unlink()
    assert [check.right for check in verify(spec)] == [None, None]


def test_verifying_what_is_not_there_says_how_to_get_it() -> None:
    with pytest.raises(UserError, match="ml-x: not found"):
        verify(spec_of(FILES, "ml-x"))
