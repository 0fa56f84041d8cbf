"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_disk import small_disk

from cfbench_core.errors import UserError
from cfbench_core.files import (
    check_path,
    disk_full_message,
    disk_trouble,
    place_folder,
    remove_folder,
    write_atomically,
)


def test_a_file_is_written_and_replaced_with_the_folders_above_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.txt"
    write_atomically(path, "one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


def test_a_full_disk_is_one_clear_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        path = disk / "file.bin"
        write_atomically(path, b"old")
        with pytest.raises(
            UserError, match=r"the disk is full \(\d+\.\d MB left\)\. Free some space"
        ) as caught:
            write_atomically(path, b"x" * 5_000_000)
        assert len(caught.value.lines) == 1
        assert str(disk) in caught.value.lines[0]
        assert path.read_bytes() == b"old"
        assert list(disk.iterdir()) == [path]


def test_a_folder_that_is_a_file_stays_an_ordinary_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "file" / "inside", "text")


def test_a_disk_that_may_only_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(UserError, match=r"cannot be written to \(Read-only file system\)\. Change its"):
            write_atomically(disk / "file", "text")


def test_the_first_folder_to_get_a_name_keeps_it(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    assert place_folder(tmp_path / "first", tmp_path / "x" / "final")
    assert not place_folder(tmp_path / "second", tmp_path / "x" / "final")
    assert (tmp_path / "x" / "final" / "file").read_text() == "first"
    assert (tmp_path / "second" / "file").read_text() == "second"


def test_removing_a_folder_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("")
    for _ in range(2):
        remove_folder(tmp_path / "folder", tmp_path / "grave")
        assert list(tmp_path.iterdir()) == []


def test_a_disk_with_space_but_no_inodes_is_said_to_hold_no_more_files(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        subprocess.run(["mount", "-o", "remount,nr_inodes=4", str(disk)], check=True)
        with pytest.raises(UserError) as caught:
            for number in range(10):
                write_atomically(disk / f"{number}", "text")
        (line,) = caught.value.lines
        assert "the disk can hold no more files (all of its inodes are in use)" in line
        assert "MB left" not in line


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EFBIG, "a file would be larger than allowed; raise the limit (ulimit -f)"),
        (errno.EDQUOT, "your disk quota is used up"),
        (errno.EMFILE, "Too many open files; raise the limit of open files (ulimit -n)"),
        (errno.EIO, "the disk fails"),
    ],
)
def test_what_else_a_system_lacks_is_one_line(tmp_path: Path, number: int, words: str) -> None:
    with pytest.raises(UserError) as caught, disk_trouble(tmp_path):
        raise OSError(number, os.strerror(number))
    (line,) = caught.value.lines
    assert line.startswith(f"{tmp_path}: ") and words in line


def test_what_a_library_says_in_words_is_understood(tmp_path: Path) -> None:
    assert "ulimit -f" in disk_full_message(tmp_path, ValueError("IO error: File too large (os error 27)"))


def test_an_empty_folder_in_place_of_a_file_is_replaced_and_a_full_one_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_atomically(tmp_path / "empty", "text")
    assert (tmp_path / "empty").read_text() == "text"
    (tmp_path / "full" / "inner").mkdir(parents=True)
    with pytest.raises(UserError, match="full: is a folder where a file belongs; remove it"):
        write_atomically(tmp_path / "full", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_device_or_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    write_atomically(link, "text")
    assert pipe.is_fifo() and link.is_symlink() and link.is_char_device()
    write_atomically(pipe, "text")  # nobody reads it any more, and nobody is waited for
    assert pipe.read_text() == "text"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_standard_output_that_is_a_file_is_written_to_in_its_turn(tmp_path: Path) -> None:
    code = """if True:
        import os
        from pathlib import Path
        from cfbench_core.files import write_atomically
        os.write(1, b"before\\n")
        write_atomically(Path("/proc/self/fd/1"), "content\\n")
        os.write(1, b"after\\n")
    """
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text().split() == ["before", "content", "after"]


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes")
def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    check_path(tmp_path / "日本語")
    check_path(Path("relative"))
    with pytest.raises(UserError, match=r"caf\\udce9/run: its name is not in UTF-8; rename it"):
        check_path(tmp_path / os.fsdecode(b"caf\xe9") / "run")
