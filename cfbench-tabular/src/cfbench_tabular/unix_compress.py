"""Decompression of files of Unix ``compress`` (``.Z``), in which UCI publishes two of the data sets of CF-tabular.

Lempel, Ziv and Welch: codes of 9 to 16 bits, least significant bit first, in blocks of eight codes; code 256 clears
the table. Python's standard library does not read this format.
"""

from __future__ import annotations

import numpy as np

from cfbench_core.errors import UserError

MAGIC = b"\x1f\x9d"
CLEAR = 256
MANY = 1 << 16
"""Codes of the maximum width that are read at a time."""


def decompressed(data: bytes, name: str = "file") -> bytes:
    """The content of a ``.Z`` file.

    Raises:
        UserError: if it is not a .Z file, or is damaged.
    """
    if data[:2] != MAGIC or len(data) < 3:
        raise UserError(f"{name}: is not a .Z file (these begin with the bytes 1f 9d)")
    widest, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    if not 9 <= widest <= 16:
        raise UserError(f"{name}: is damaged (codes of {widest} bits)")
    roots = [bytes([byte]) for byte in range(256)] + [b""] * clears
    out: list[bytes] = []
    words, width, start, previous = list(roots), 9, 3, b""
    while start < len(data):
        # The number of codes of this width until the table needs wider ones.
        grows = width < widest
        most = (1 << width) - len(words) + (not previous) if grows else MANY
        codes = _codes(data[start : start + _bytes_of(most, width)], width)[:most]
        for read, code in enumerate(codes, 1):
            if code == CLEAR and clears:
                start += _bytes_of(read, width)
                words, width, previous = list(roots), 9, b""
                break
            if code < len(words):
                word = words[code]
            elif code == len(words) and previous:
                word = previous + previous[:1]
            else:
                raise UserError(f"{name}: is damaged (a code that is not in the table)")
            out.append(word)
            if previous and len(words) < 1 << widest:
                words.append(previous + word[:1])
            previous = word
        else:
            start += _bytes_of(most, width)
            width += grows
    return b"".join(out)


def _bytes_of(codes: int, width: int) -> int:
    """The number of bytes of ``codes`` codes: blocks of eight take ``width`` bytes."""
    return -(-codes // 8) * width


def _codes(data: bytes, width: int) -> list[int]:
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    whole = bits[: len(bits) // width * width].reshape(-1, width)
    codes: list[int] = (whole @ (1 << np.arange(width))).tolist()
    return codes
