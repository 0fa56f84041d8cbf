"""What a data set declares about its files: their forms on disk and the downloads of their owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Progress = Callable[[str, int, int | None], None]
"""``progress(file name, bytes so far, bytes in all or None)``."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file as its owner publishes it.

    Attributes:
        name: what it is called on disk.
        url: where it is downloaded from.
        bytes, sha256: what it must be. None: not known, so not checked, as the record of the download says.
        licence, page: the owner's terms in a few words, and where they can be read.
        members: for a zip archive, what is taken out of it (``"ml-1m/ratings.dat"``, saved as
            ``ratings.dat``); the archive itself is deleted.
    """

    name: str
    url: str
    bytes: int | None = None
    sha256: str | None = None
    licence: str = ""
    page: str = ""
    members: tuple[str, ...] = ()

    @property
    def saved(self) -> tuple[str, ...]:
        """The names of what it leaves on disk."""
        return tuple(member.rpartition("/")[2] for member in self.members) or (self.name,)


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way in which a data set may lie on disk: all of ``files``, and of ``extras`` what there is."""

    files: tuple[str, ...]
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """What a data set needs.

    Attributes:
        id, suite: ``"ml-1m"``, ``"recsys"``.
        forms: any one of them will do; the one that is named first where several lie in one folder.
        downloads: files of the owner that together make up a form. Empty: it cannot be downloaded.
        package: an embedded data set's package; the first form lies in its folder ``data/``.
        licence, page: the owner's terms in a few words, and where they can be read.
        how: how to get it where it cannot be downloaded, as a command to people ("Build it with ...").
        sha256: of files on disk, by name, as far as it is known; for ``cfbench data verify``.
    """

    id: str
    suite: str
    forms: tuple[Form, ...]
    downloads: tuple[DataFile, ...] = ()
    package: str = ""
    licence: str = ""
    page: str = ""
    how: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int | None:
        """How much there is to download; None when it is not known."""
        sizes = [file.bytes for file in self.downloads]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None
