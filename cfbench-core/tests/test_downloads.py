"""Downloads, from a server on 127.0.0.1 that misbehaves on request."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import socket
import urllib.request
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from file_server import Site, serving
from small_disk import small_disk

from cfbench_core.data_files import DataFile
from cfbench_core.downloads import Patience, _SecureRedirects, download, extract
from cfbench_core.errors import UserError
from cfbench_core.files import disk_trouble

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(attempts=3, timeout=0.4, pause=0.01)


def file_at(url: str) -> DataFile:
    return DataFile(name="file.bin", url=url, bytes=len(CONTENT), sha256=SHA256)


def test_a_file_is_downloaded_once_and_nothing_else_is_left(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    with serving(Site(CONTENT)) as site:
        path = download(file_at(site.url), tmp_path, lambda *now: seen.append(now), QUICK)
        assert path.read_bytes() == CONTENT
        assert download(file_at(site.url), tmp_path, None, QUICK) == path
        assert len(site.requests) == 1
    assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".lock")] == ["file.bin"]
    assert seen[0] == ("file.bin", 0, len(CONTENT))
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_broken_download_resumes_where_it_broke(tmp_path: Path) -> None:
    with serving(Site(CONTENT, break_after=[100_000, 50_000, 7])) as site:
        path = download(file_at(site.url), tmp_path, None, QUICK)
    assert path.read_bytes() == CONTENT
    starts = [request.get("Range") for request in site.requests]
    assert starts == [None, "bytes=100000-", "bytes=150000-", "bytes=150007-"]
    assert site.requests[1]["If-Range"] == '"one"'


def test_a_stalled_download_times_out_and_resumes(tmp_path: Path) -> None:
    with serving(Site(CONTENT, break_after=[100_000], stall=True)) as site:
        path = download(file_at(site.url), tmp_path, None, QUICK)
    assert path.read_bytes() == CONTENT
    assert site.requests[1]["Range"] == "bytes=100000-"


def test_a_server_without_progress_is_given_up_and_the_next_call_resumes(tmp_path: Path) -> None:
    with serving(Site(CONTENT, break_after=[1000, 0, 0, 0])) as site:
        with pytest.raises(UserError, match=r"broke off after 1,000 of 512,000 bytes \(3 attempts\)"):
            download(file_at(site.url), tmp_path, None, QUICK)
        assert not (tmp_path / "file.bin").exists()
        site.break_after.clear()
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert site.requests[-1]["Range"] == "bytes=1000-"


def test_a_killed_download_is_resumed_by_the_next_process(tmp_path: Path) -> None:
    with serving(Site(CONTENT, break_after=[200_000], stall=True)) as site:
        patient = replace(QUICK, timeout=30)
        process = multiprocessing.get_context("spawn").Process(
            target=download, args=(file_at(site.url), tmp_path, None, patient)
        )
        process.start()
        part = tmp_path / "file.bin.part"
        while not part.exists() or part.stat().st_size < 200_000:
            assert process.is_alive()
            process.join(0.02)
        process.kill()
        process.join()
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert site.requests[1]["Range"] == "bytes=200000-"


def test_a_server_without_ranges_sends_the_whole_again(tmp_path: Path) -> None:
    with serving(Site(CONTENT, ranges=False, break_after=[100_000])) as site:
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert len(site.requests) == 2


def test_a_server_without_ranges_that_always_breaks_is_given_up(tmp_path: Path) -> None:
    with serving(Site(CONTENT, ranges=False, break_after=[100_000] * 50)) as site:
        with pytest.raises(UserError, match="broke off"):
            download(file_at(site.url), tmp_path, None, QUICK)
        assert len(site.requests) == 3


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"weak"'}])
def test_a_file_that_cannot_be_recognised_is_never_pieced_together(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    with serving(Site(CONTENT, headers=headers, break_after=[100_000])) as site:
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert "Range" not in site.requests[1]


def test_a_date_recognises_a_file_as_well_as_an_etag(tmp_path: Path) -> None:
    date = "Wed, 01 Jan 2020 00:00:00 GMT"
    headers = {"ETag": 'W/"weak"', "Last-Modified": date}
    with serving(Site(CONTENT, headers=headers, break_after=[100_000])) as site:
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert site.requests[1]["If-Range"] == date


def test_a_file_that_changes_between_two_attempts_is_read_from_its_beginning(tmp_path: Path) -> None:
    with serving(Site(b"x" * len(CONTENT), break_after=[100_000, 0, 0, 0])) as site:
        with pytest.raises(UserError):
            download(file_at(site.url), tmp_path, None, QUICK)
        site.content, site.headers = CONTENT, {"ETag": '"two"'}
        site.break_after.clear()
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT


def test_a_changed_file_under_the_same_etag_is_downloaded_once_more_in_one_piece(tmp_path: Path) -> None:
    with serving(Site(b"x" * len(CONTENT), break_after=[100_000, 0, 0])) as site:
        with pytest.raises(UserError):
            download(file_at(site.url), tmp_path, None, QUICK)
        site.content = CONTENT
        site.break_after.clear()
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert "Range" in site.requests[-2] and "Range" not in site.requests[-1]


def test_a_wrong_file_is_refused_and_deleted(tmp_path: Path) -> None:
    with (
        serving(Site(b"x" * len(CONTENT))) as site,
        pytest.raises(UserError, match=r"its sha256 is [0-9a-f]{64}, must be .*it was discarded") as caught,
    ):
        download(file_at(site.url), tmp_path, None, QUICK)
    assert len(caught.value.lines) == 1
    assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".lock")] == []


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x"])
def test_a_wrong_size_is_refused_before_it_is_downloaded(tmp_path: Path, content: bytes) -> None:
    with serving(Site(content)) as site, pytest.raises(UserError, match=r"must have 512,000: its owner"):
        download(file_at(site.url), tmp_path, None, QUICK)
    assert not list(tmp_path.glob("file.bin*"))


def test_a_missing_file_is_not_requested_again(tmp_path: Path) -> None:
    with serving(Site(CONTENT, statuses=[404] * 9)) as site:
        with pytest.raises(UserError, match="the server answers 404 Not Found"):
            download(file_at(site.url), tmp_path, None, QUICK)
        assert len(site.requests) == 1


def test_a_busy_server_is_retried(tmp_path: Path) -> None:
    with serving(Site(CONTENT, statuses=[503, 429])) as site:
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT
        assert len(site.requests) == 3


def test_nobody_at_the_address_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/file"
    with pytest.raises(UserError, match="refused") as caught:
        download(file_at(url), tmp_path, None, QUICK)
    assert len(caught.value.lines) == 1


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only http and https"):
        download(file_at("file:///etc/hostname"), tmp_path)


def test_a_file_of_unknown_size_and_checksum_is_taken_as_it_comes(tmp_path: Path) -> None:
    with serving(Site(CONTENT, break_after=[1000])) as site:
        file = DataFile(name="file.bin", url=site.url)
        assert download(file, tmp_path, None, QUICK).read_bytes() == CONTENT


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    empty = DataFile(name="empty", url="", bytes=0, sha256=hashlib.sha256(b"").hexdigest())
    with serving(Site(b"")) as site:
        assert download(replace(empty, url=site.url), tmp_path, None, QUICK).read_bytes() == b""


def test_two_processes_that_want_one_file_get_one_whole_file(tmp_path: Path) -> None:
    with serving(Site(CONTENT)) as site:
        context = multiprocessing.get_context("spawn")
        both = [
            context.Process(target=download, args=(file_at(site.url), tmp_path, None, QUICK))
            for _ in range(2)
        ]
        for process in both:
            process.start()
        for process in both:
            process.join()
        assert [process.exitcode for process in both] == [0, 0]
        assert (tmp_path / "file.bin").read_bytes() == CONTENT
        assert len(site.requests) == 1


def test_a_full_disk_keeps_what_there_is_for_the_next_time(tmp_path: Path) -> None:
    large = CONTENT * 8
    with small_disk(tmp_path) as disk, serving(Site(large)) as site:
        file = DataFile(name="file.bin", url=site.url, bytes=len(large))
        with pytest.raises(UserError, match="the disk is full"), disk_trouble(disk):
            download(file, disk, None, QUICK)
        assert len(site.requests) == 1
        assert not (disk / "file.bin").exists()
        assert 0 < (disk / "file.bin.part").stat().st_size < len(large)


def test_a_part_that_a_crash_damaged_is_downloaded_again(tmp_path: Path) -> None:
    """Of a file that was written shortly before the power failed, the size may be right and the content not."""
    with serving(Site(CONTENT)) as site:
        (tmp_path / "file.bin.part").write_bytes(bytes(len(CONTENT)))
        known = {"url": site.url, "validator": '"one"'}
        (tmp_path / "file.bin.part.json").write_text(json.dumps(known))
        assert download(file_at(site.url), tmp_path, None, QUICK).read_bytes() == CONTENT


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return path


def test_members_of_an_archive_land_directly_in_the_folder(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", {"ml/ratings.dat": b"1", "ml/README": b"2", "../evil": b"3"})
    folder = tmp_path / "out"
    folder.mkdir()
    assert extract(archive, ("ml/ratings.dat",), folder) == [folder / "ratings.dat"]
    assert [(each.name, each.read_bytes()) for each in folder.iterdir()] == [("ratings.dat", b"1")]
    assert not (tmp_path / "evil").exists()


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    archive = zip_of(tmp_path / "a.zip", {"../../evil": b"3", "..": b"4", "a\\..\\evil": b"5"})
    assert extract(archive, ("../../evil",), folder) == [folder / "evil"]
    for name in ("..", "x/..", "a\\..\\evil", "ml/"):
        with pytest.raises(UserError, match="is no name for a file"):
            extract(archive, (name,), folder)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zip", "out"]


def test_a_damaged_archive_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", {"ml/ratings.dat": CONTENT})
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(UserError, match=r"There is no item named 'ml/movies\.dat'"):
        extract(archive, ("ml/movies.dat",), folder)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:60] + b"\0" * 40 + whole[100:])
    with pytest.raises(UserError, match="no readable zip archive"):
        extract(archive, ("ml/ratings.dat",), folder)
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="no readable zip archive"):
        extract(archive, ("ml/ratings.dat",), folder)
    assert list(folder.iterdir()) == []


def test_a_web_page_in_place_of_a_file_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    page = b"<!DOCTYPE html><html><body>Please log in</body></html>"
    file = DataFile(name="ratings.csv", url="")
    headers = {"ETag": '"one"', "Content-Type": "text/html; charset=utf-8"}
    with (
        serving(Site(page, headers=headers)) as site,
        pytest.raises(UserError, match="the server sent a web page, not data"),
    ):
        download(replace(file, url=site.url), tmp_path, None, QUICK)
    with serving(Site(b"\n " + page)) as site, pytest.raises(UserError, match="is a web page, not data"):
        download(replace(file, url=site.url), tmp_path, None, QUICK)
    assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".lock")] == []


@pytest.mark.parametrize("name", ["ratings.csv.gz", "ratings.zip", "ratings.csv.xz", "ratings.parquet"])
def test_a_file_that_does_not_begin_as_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    with (
        serving(Site(b"user,item\n1,2\n")) as site,
        pytest.raises(UserError, match=r"does not begin as a \.\w+ file does"),
    ):
        download(DataFile(name=name, url=site.url), tmp_path, None, QUICK)


def test_a_redirect_from_https_to_http_is_refused() -> None:
    request = urllib.request.Request("https://data.example/file")
    with pytest.raises(UserError, match=r"https://data\.example/file: redirects to http://.*not encrypted"):
        _SecureRedirects().redirect_request(request, None, 302, "", {}, "http://127.0.0.1/file")
    followed = _SecureRedirects().redirect_request(request, None, 302, "", {}, "https://mirror.example/file")
    assert followed is not None


def test_a_redirect_from_http_is_followed(tmp_path: Path) -> None:
    with serving(Site(CONTENT)) as target, serving(Site(b"", redirect_to=target.url)) as site:
        path = download(file_at(site.url), tmp_path, None, QUICK)
    assert path.read_bytes() == CONTENT


def test_an_archive_that_unpacks_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfbench_core.content_checks.FREE_BYTES", 1 << 20)
    folder = tmp_path / "out"
    folder.mkdir()
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("zeros.csv", bytes(8 << 20))
    with pytest.raises(UserError, match=r"bomb|zeros\.csv: unpacks to more than"):
        extract(archive, ["zeros.csv"], folder)
    assert list(folder.iterdir()) == []
