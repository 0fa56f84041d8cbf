"""Files that Unix ``compress`` made (``.Z``): the form in which UCI keeps two of the study's sets.

Lempel, Ziv and Welch: codes of 9 bits at first and 16 at most, least significant bit first, in blocks of eight
codes; 256 empties the table. Python's library does not read it, and a data set should not need a program.
"""

from __future__ import annotations

from cfbench_core.errors import UserError

MAGIC = b"\x1f\x9d"
CLEAR = 256


def decompressed(data: bytes, name: str = "file") -> bytes:
    """The content of a ``.Z`` file.

    Raises:
        UserError: when it is not one, or is damaged.
    """
    if data[:2] != MAGIC or len(data) < 3:
        raise UserError(f"{name}: was not made by 'compress' (a .Z file begins with 1f 9d)")
    widest, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    if not 9 <= widest <= 16:
        raise UserError(f"{name}: is damaged (codes of {widest} bits)")
    roots = [bytes([byte]) for byte in range(256)] + [b""] * clears
    words, width, place, block = list(roots), 9, 3, 3
    out: list[bytes] = []
    previous = b""
    bits = at = 0  # bits read ahead, and how many
    mask = (1 << width) - 1
    while True:
        while at < width and place < len(data):
            bits |= data[place] << at
            at, place = at + 8, place + 1
        if at < width:
            return b"".join(out)
        code, bits, at = bits & mask, bits >> width, at - width
        if code == CLEAR and clears:
            place, bits, at = _next_block(place, block, width, at), 0, 0
            words, width, block, previous = list(roots), 9, place, b""
            mask = (1 << width) - 1
            continue
        if code < len(words):
            word = words[code]
        elif code == len(words) and previous:
            word = previous + previous[:1]
        else:
            raise UserError(f"{name}: is damaged (a code that was not made yet)")
        out.append(word)
        if previous and len(words) < 1 << widest:
            words.append(previous + word[:1])
        previous = word
        if len(words) > mask and width < widest:
            place, bits, at = _next_block(place, block, width, at), 0, 0
            width, block = width + 1, place
            mask = (1 << width) - 1


def _next_block(place: int, block: int, width: int, unused: int) -> int:
    """Where the codes of another width begin: after a whole number of blocks of ``width`` bytes (eight codes)."""
    read = (place - block) * 8 - unused
    blocks = -(-read // (8 * width))
    return block + blocks * width
