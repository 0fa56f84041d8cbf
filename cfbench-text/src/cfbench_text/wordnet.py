"""Synsets of a word, from the files of WordNet's dictionary in a folder.

It reads ``index.*`` (the synsets of a word) and ``*.exc`` (irregular forms), which suffice to decide whether two words
share a synset. NLTK's reader is not used: it requires ``lexnames``, which Debian's package ``wordnet-base`` does not
contain, and rejects folders outside its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest

PARTS = ("noun", "verb", "adj", "adv")

ENDINGS = {
    "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "adj": "er: est: er:e est:e",
    "adv": "",
}
"""Of WordNet's morphy: an ending, and what stands there in the base form."""

_RULES = {
    part: [(rule.partition(":")[0], rule.partition(":")[2]) for rule in rules.split()]
    for part, rules in ENDINGS.items()
}


class WordNet:
    """Raises a UserError when the folder has no dictionary."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        missing = [name for name in (f"index.{part}" for part in PARTS) if not (folder / name).is_file()]
        if missing:
            raise UserError(
                f"wordnet {folder}: has no {missing[0]}; needs the folder with WordNet's files index.noun,"
                " index.verb, ... (Debian's package wordnet-base has it as /usr/share/wordnet)"
            )
        self._index = {part: dict(self._entries(part)) for part in PARTS}
        self._irregular = {part: dict(self._exceptions(part)) for part in PARTS}
        self.synsets = functools.lru_cache(maxsize=None)(self._synsets)

    def signature(self) -> str:
        """Digest of the files that are read, without the folder's name."""
        files = [self.folder / name for part in PARTS for name in (f"index.{part}", f"{part}.exc")]
        lines = "".join(f"{file.name} {file_digest(file)}\n" for file in files if file.is_file())
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def _synsets(self, word: str) -> frozenset[tuple[str, str]]:
        """(part of speech, place in the data file) of every synset that the word, or a base form of it, is in."""
        return frozenset(
            (part, place)
            for part in PARTS
            for base in self.bases(word, part)
            for place in _places(self._index[part][base])
        )

    def bases(self, word: str, part: str) -> list[str]:
        """The word itself and what it may be a form of, as far as WordNet has it: "strings" gives "string"."""
        others = self._irregular[part].get(word)
        if others is None:
            others = [word.removesuffix(end) + base for end, base in _RULES[part] if word.endswith(end)]
        return [base for base in dict.fromkeys([word, *others]) if base in self._index[part]]

    def _entries(self, part: str) -> Iterator[tuple[str, str]]:
        """(word, its line)."""
        with (self.folder / f"index.{part}").open(encoding="utf-8") as lines:
            for line in lines:
                word = line.partition(" ")[0]
                if word:  # the licence at the head is indented
                    yield word, line

    def _exceptions(self, part: str) -> Iterator[tuple[str, list[str]]]:
        path = self.folder / f"{part}.exc"
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.strip():
                    form, *bases = line.split()
                    yield form, bases


def _places(line: str) -> list[str]:
    """Of a line "lemma pos synset_cnt ... offset offset ...": synset_cnt offsets, at its end."""
    fields = line.split()
    return fields[-int(fields[2]) :]


@functools.lru_cache(maxsize=2)
def load(folder: str) -> WordNet:
    return WordNet(Path(folder).expanduser())
