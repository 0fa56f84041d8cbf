"""Reading what Unix ``compress`` wrote, against a literal writer of the format and against gzip, which reads it too."""

import random
import shutil
import subprocess

import pytest
from lzw_writer import compressed

from cfbench_core.errors import UserError
from cfbench_tabular.unix_compress import decompressed

BY_COMPRESS = bytes.fromhex("1f9d906100")  # what the program writes for the one letter "a"
TEXTS = {
    "one letter": b"a",
    "a code that is only being made": b"aaaaaaaaaaaaaaaa",
    "longer codes": b" ".join(b"%d" % (i * i) for i in range(20_000)),
    "more than sixteen bits of codes": bytes(random.Random(0).randrange(256) for _ in range(120_000)),
}


def test_a_letter():
    assert decompressed(BY_COMPRESS) == b"a"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("most", [9, 12, 16])
def test_what_was_written_comes_back(text, most):
    assert decompressed(compressed(text, most)) == text


def test_an_emptied_table_begins_anew():
    text = TEXTS["longer codes"]
    assert decompressed(compressed(text, clear_after=3000)) == text


@pytest.mark.skipif(shutil.which("gzip") is None, reason="needs gzip")
def test_gzip_reads_the_same():
    for text in TEXTS.values():
        for packed in (compressed(text), compressed(text, clear_after=len(text) // 2)):
            assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True).stdout == text
            assert decompressed(packed) == text


def test_other_files_are_refused():
    with pytest.raises(UserError, match=r"data\.Z: is not a .Z file"):
        decompressed(b"height,width\n", "data.Z")
    with pytest.raises(UserError, match="is damaged"):
        decompressed(bytes.fromhex("1f9d90") + b"\xff" * 20)
