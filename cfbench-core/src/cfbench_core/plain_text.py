"""Text of others (messages of exceptions, labels, ids) in lines that a person reads."""

from __future__ import annotations

import unicodedata

LIMIT = 2000
"""The longest message, in characters, that is stored or shown."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
"""Category Cf, but a part of words in Persian, Hindi and others, and of emoji."""


def visible(text: str) -> str:
    r"""The text with each control character, direction mark and lone surrogate as an escape such as ``\x1b``.

    Letters of every script stay as they are. The result can be encoded in UTF-8 and moves no cursor.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def visible_lines(text: str) -> str:
    """The text with its line ends, and otherwise :func:`visible`."""
    return "\n".join(map(visible, text.split("\n")))


def one_line(text: str, limit: int = LIMIT) -> str:
    """The text on one line, visible, and at most ``limit`` characters long (then it ends in "...")."""
    # Cut before anything else: a message may have megabytes, and escapes only make it longer.
    words = " ".join(text[: 4 * limit].split())
    shown = visible(words)
    if len(shown) > limit or len(text) > 4 * limit:
        return shown[: max(limit - 3, 0)].rstrip() + "..."
    return shown


def _visible(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str, limit: int = 20_000) -> str:
    """Lines of text, visible, without the middle where they have more than ``limit`` characters."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half:,} characters left out ...\n{text[-half:]}"
    return "\n".join(visible(line) for line in text.split("\n"))
