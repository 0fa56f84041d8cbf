"""Counts model queries: how often an explainer queries the model that it explains."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


class CountedModel:
    """A model that counts the rows (profiles, graphs, vectors, ...) it is queried with, and is otherwise the model.

    Attributes:
        queries: rows so far. Whoever pads a batch to a fixed shape subtracts the padding.
    """

    def __init__(self, model: Any, methods: Collection[str]) -> None:
        """``methods``: names of the model's methods whose first argument has one row for each query."""
        self.queries = 0
        self._model = model
        self._methods = frozenset(methods)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return self._counting(value) if name in self._methods else value

    def _counting(self, method: Any) -> Any:
        def counted(first: Any, *more: Any, **options: Any) -> Any:
            self.queries += first.shape[0] if hasattr(first, "shape") else len(first)
            return method(first, *more, **options)

        return counted


@contextmanager
def counted_if_done(model: Any) -> Iterator[None]:
    """Queries of a counted model inside count only if nothing is raised: what failed may be tried again."""
    before = getattr(model, "queries", 0)
    try:
        yield
    except BaseException:
        if isinstance(model, CountedModel):
            model.queries = before
        raise
