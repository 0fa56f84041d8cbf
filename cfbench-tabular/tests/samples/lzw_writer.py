"""Files as Unix ``compress`` writes them, for tests of reading them."""


def compressed(data, most=16, clear_after=None):
    """The format written the slow way: a list of codes, padded to eight whenever their width changes."""
    table, out, bits, width, group = {bytes([b]): b for b in range(256)}, bytearray(), [], 9, []

    def flush():
        while len(group) % 8:
            group.append(0)
        for code in group:
            bits.extend(code >> place & 1 for place in range(width))
        group.clear()

    def emit(code):
        group.append(code)
        if len(group) == 8:
            flush()

    size, word = 257, b""
    for place, byte in enumerate(data):
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        emit(table[word])
        if size < 1 << most:
            table[longer] = size
            size += 1
            if size > 1 << width:
                flush()
                width += 1
        word = bytes([byte])
        if clear_after is not None and place == clear_after:
            emit(table[word])
            emit(256)
            flush()
            table, size, width, word = {bytes([b]): b for b in range(256)}, 257, 9, b""
    emit(table[word])
    for code in group:
        bits.extend(code >> place & 1 for place in range(width))
    for start in range(0, len(bits), 8):
        out.append(sum(bit << place for place, bit in enumerate(bits[start : start + 8])))
    return bytes([0x1F, 0x9D, 0x80 | most]) + bytes(out)
