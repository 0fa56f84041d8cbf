"""What the suite asks of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_text.reviews import Reviews

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess, Source


class Dataset(Protocol):
    """A component of kind "dataset" without files: ``Name(config)``, then ``load()``."""

    def load(self) -> Reviews:
        """The reviews, in the order in which ties of time are broken."""


class DatasetOfFiles(Protocol):
    """A component of kind "dataset" whose reviews stand in files."""

    def find(self, access: DataAccess) -> Source:
        """The files, downloaded if need be: their fingerprints decide whether cached results hold."""

    def load(self, source: Source | Mapping[str, Any]) -> Reviews:
        """The reviews, from what :meth:`find` found."""
