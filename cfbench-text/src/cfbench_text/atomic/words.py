"""Lists of words as they are written in this package: separated by blanks and line ends."""


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(text.split())
