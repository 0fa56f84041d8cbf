"""Topics of a domain, with the keywords by which the extractor ``rules`` finds them.

A domain is a YAML file with ``title`` and ``topics``, a mapping from the topic's short name (lower case) to ``title``,
``description`` and ``keywords``. With ``keywords: all`` a topic takes all statements that have no keyword of another.
The package contains the domains of Statement factuality (tables X to XIV), one for musical instruments, one for the
synthetic reviews, and ``general``, whose only topic takes all statements. Your own domain is given by the path of a file.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cfbench_core.data_files import Source
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plain_text import one_line
from cfbench_core.user_files import user_files
from cfbench_core.yaml_nodes import compose, plain, read_text

FOLDER = Path(__file__).parent
TOPICS = "domain"
"""Name of the file of topics among the files of a data set."""
ALL = "all"
"""As keywords: the topic of all statements without a keyword of another topic."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Topic:
    """One thing that statements are about. ``keywords`` are in lower case, single words or phrases.

    ``takes_all``: statements without a keyword of another topic have this topic; it has no keywords of its own.
    """

    name: str
    title: str
    description: str
    keywords: tuple[str, ...]
    takes_all: bool = False


class Domain:
    """The topics of a domain, in the order of its file."""

    def __init__(self, title: str, topics: tuple[Topic, ...]) -> None:
        self.title = title
        self.topics = {topic.name: topic for topic in topics}
        self._other = next((topic.name for topic in topics if topic.takes_all), "")
        self._topic_of = {word: topic.name for topic in reversed(topics) for word in topic.keywords}
        self._starting: dict[str, list[tuple[list[str], str]]] = {}
        for keyword in sorted(self._topic_of, key=lambda word: (-len(_WORD.findall(word)), word)):
            words = _WORD.findall(keyword)
            self._starting.setdefault(words[0], []).append((words, keyword))

    def keywords_in(self, text: str) -> list[str]:
        """The keywords of a text, whole words in any case, in order, with repetitions; the longest at a place."""
        words, found, place = _WORD.findall(text.lower()), [], 0
        while place < len(words):
            taken = 1
            for parts, keyword in self._starting.get(words[place], ()):
                if words[place : place + len(parts)] == parts:
                    found.append(keyword)
                    taken = len(parts)
                    break
            place += taken
        return found

    def covers(self, text: str) -> bool:
        """Whether a text may be a statement on one of the topics."""
        return bool(self._other) or bool(self.keywords_in(text))

    def topic_of(self, statement: str) -> str:
        """The topic with most keywords in the statement, of several the first to appear.

        Without keywords it is the topic with ``keywords: all``, or "" if there is none.
        """
        found = Counter(self._topic_of[word] for word in self.keywords_in(statement))
        return max(found, key=lambda topic: found[topic], default=self._other)

    @property
    def vocabulary(self) -> frozenset[str]:
        """All keywords."""
        return frozenset(self._topic_of)


def names() -> list[str]:
    """The domains that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@functools.lru_cache(maxsize=16)
def load_domain(name: str) -> Domain:
    """A domain by its name, with - or _, or by the path of its file.

    Raises:
        UserError: if there is none, or the file is not as it should be; what is wrong and where.
    """
    path = own_file(name) or _packaged(name)
    root = compose(read_text(path), lambda line: f"{path}:{line}")
    return _domain(path, None if root is None else plain(root))


def own_file(name: str) -> Path | None:
    """The file of a user-defined domain; None for a domain of the package.

    Raises:
        UserError: if it is neither.
    """
    with contextlib.suppress(OSError, RuntimeError):  # a name that is too long, or an unknown ~user
        if _packaged(name).is_file():
            return None
        path = Path(name).expanduser()
        if path.is_file():
            return path.resolve()
    known = [found.replace("_", "-") for found in names()]
    shown = one_line(name, 100)
    raise UserError(
        f"domain {shown!r}: no such domain or file.{did_you_mean(name, known)} There are {', '.join(known)}"
    )


def with_topics(source: Source, domain: str) -> Source:
    """The files of a data set, with the file of its topics if it is user-defined: its digest is part of the cache key."""
    path = own_file(domain)
    if path is None:
        return source
    topics = user_files({TOPICS: path})
    return replace(source, paths={**source.paths, **topics.paths}, sha256={**source.sha256, **topics.sha256})


def _packaged(name: str) -> Path:
    return FOLDER / f"{name.replace('-', '_')}.yaml"


def _domain(path: Path, document: Any) -> Domain:
    topics = document.get("topics") if isinstance(document, dict) else None
    if not isinstance(topics, dict) or not topics:
        raise UserError(f"{path}: needs 'topics', a mapping from short names to title, description, keywords")
    title = str(document.get("title", path.stem))
    found = tuple(_topic(path, str(name), about) for name, about in topics.items())
    if sum(topic.takes_all for topic in found) > 1:
        raise UserError(f"{path}: only one topic may have 'keywords: {ALL}'")
    return Domain(title, found)


def _topic(path: Path, name: str, about: Any) -> Topic:
    where = f"{path}: topics.{name}"
    if name != name.lower() or not name.strip():
        raise UserError(f"{where}: the short name of a topic must be in lower case")
    if not isinstance(about, Mapping):
        raise UserError(f"{where}: must be a mapping with title, description and keywords")
    unknown = set(about) - {"title", "description", "keywords"}
    if unknown:
        raise UserError(
            f"{where}: has no option {sorted(unknown)[0]!r}; there are title, description, keywords"
        )
    keywords = about.get("keywords") or []
    title, description = str(about.get("title", name)), str(about.get("description", ""))
    if keywords == ALL:
        return Topic(name, title, description, (), takes_all=True)
    if (
        not isinstance(keywords, list)
        or not keywords
        or not all(_WORD.search(str(word)) for word in keywords)
    ):
        raise UserError(f"{where}.keywords: must be a list of words or phrases, or '{ALL}'")
    words = tuple(dict.fromkeys(" ".join(str(word).lower().split()) for word in keywords))
    return Topic(name, title, description, words)
