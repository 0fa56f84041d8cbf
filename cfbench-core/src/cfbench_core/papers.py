"""The papers that components cite: structured references, read from each package's ``papers.toml``.

One table per key::

    [nobrega2019lime]
    authors = ["Nóbrega, Caio", "Marinho, Leandro"]
    title = "Towards explaining recommendations through local surrogate models"
    venue = "Proceedings of the 34th ACM/SIGAPP Symposium on Applied Computing"
    year = 2019
    doi = "10.1145/3297280.3297443"

``doi`` and ``arxiv`` are identifiers without an address. ``entry`` names the BibTeX type where the venue does not
show it.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.specs import ComponentSpec

FILE = "papers.toml"

_CONFERENCE = re.compile(
    r"proceedings|conference|workshop|symposium|advances in neural|\b(sigir|neurips|icml|iclr|aaai|kdd|recsys|acl|emnlp|"
    r"wsdm|cikm|www|aistats|facct|fat\*)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One publication.

    Attributes:
        key: the name by which components cite it, also its BibTeX key.
        authors: "Family, Given", in the order of the title page.
        title: as published.
        venue: the journal, the proceedings or the publisher; empty for a preprint.
        year: of publication.
        doi: without ``https://doi.org/``; empty if there is none or it is not known.
        arxiv: the identifier, ``2205.01068``; empty if there is none or it is not known.
        entry: the BibTeX type: article, inproceedings, book, misc, ...
    """

    key: str
    authors: tuple[str, ...]
    title: str
    venue: str = ""
    year: int
    doi: str = ""
    arxiv: str = ""
    entry: str = ""

    def __post_init__(self) -> None:
        if not self.authors or not self.title:
            raise ValueError(f"paper {self.key}: needs a list of authors and a title")
        if self.doi.startswith("http") or self.arxiv.startswith("http"):
            raise ValueError(f"paper {self.key}: doi and arxiv are identifiers without an address")

    def short(self) -> str:
        """ "Nóbrega & Marinho 2019", "Barkan et al. 2024"."""
        families = [author.partition(",")[0].strip() for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " & ".join(families)
        return f"{names} {self.year}"

    @property
    def url(self) -> str:
        """Its page at doi.org or arXiv; empty if neither identifier is known."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""

    @property
    def identifier(self) -> str:
        """ "doi:10.1145/..." or "arXiv:2205.01068"; empty if neither is known."""
        if self.doi:
            return f"doi:{self.doi}"
        return f"arXiv:{self.arxiv}" if self.arxiv else ""

    def text(self) -> str:
        """One line for a list of references."""
        people = "; ".join(self.authors)
        parts = (f"{people} ({self.year})", self.title, self.venue, self.url)
        return ". ".join(part.rstrip(".") for part in parts if part) + ("" if self.url else ".")

    def bibtex(self) -> str:
        """A BibTeX entry in UTF-8."""
        kind = self.entry or self._entry()
        place = {"article": "journal", "inproceedings": "booktitle", "book": "publisher"}.get(
            kind, "howpublished"
        )
        fields = {
            "author": " and ".join(self.authors),
            "title": "{" + self.title + "}",
            place: self.venue,
            "year": str(self.year),
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
        }
        escaped = {
            name: value if name in ("doi", "eprint") else re.sub(r"(?<!\\)([&%#_$])", r"\\\1", value)
            for name, value in fields.items()
            if value
        }
        body = "".join(f"  {name} = {{{value}}},\n" for name, value in escaped.items())
        return f"@{kind}{{{self.key},\n{body}}}"

    def _entry(self) -> str:
        if not self.venue or "arxiv" in self.venue.lower():
            return "misc"
        return "inproceedings" if _CONFERENCE.search(self.venue) else "article"


@functools.cache
def papers_of(package: str) -> Mapping[str, Paper]:
    """The papers that a package lists in its ``papers.toml``, by key; none if it has no such file.

    Raises:
        ValueError: if the file cannot be read; names the file and what is wrong.
    """
    import tomllib

    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder) / FILE
        if not path.is_file():
            continue
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            return {key: _paper(key, table) for key, table in tables.items()}
        except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
    return {}


def _paper(key: str, table: Mapping[str, Any]) -> Paper:
    known = {"authors", "title", "venue", "year", "doi", "arxiv", "entry"}
    unknown = sorted(set(table) - known)
    missing = sorted({"authors", "title", "year"} - set(table))
    if unknown or missing:
        problem = f"has no key {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
        raise ValueError(f"paper {key} {problem}")
    if not isinstance(table["authors"], list):
        raise ValueError(f"paper {key}: needs a list of authors")
    return Paper(key=key, **{**table, "authors": tuple(table["authors"])})


def papers_for(spec: ComponentSpec) -> list[Paper]:
    """The papers that a component cites.

    Raises:
        ValueError: if its package does not list one of them.
    """
    package = spec.target.partition(":")[0].partition(".")[0]
    known = papers_of(package) if spec.papers else {}
    missing = [key for key in spec.papers if key not in known]
    if missing:
        raise ValueError(f"{spec.id} cites {missing[0]!r}, which {package}/{FILE} does not list")
    return [known[key] for key in spec.papers]


def short_references(spec: ComponentSpec) -> str:
    """ "Tran et al. 2021; Tan et al. 2021"; a key stands for itself where its paper is not listed."""
    try:
        return "; ".join(paper.short() for paper in papers_for(spec))
    except ValueError:
        return "; ".join(spec.papers)


def unique_papers(specs: Iterable[ComponentSpec]) -> list[Paper]:
    """The papers of several components, each once, sorted by key."""
    return sorted(
        {paper.key: paper for spec in specs for paper in papers_for(spec)}.values(), key=lambda p: p.key
    )
