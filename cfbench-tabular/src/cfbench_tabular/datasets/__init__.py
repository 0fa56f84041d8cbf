"""Data sets; one module for each, but one for those of the UCI repository (``published``)."""

from __future__ import annotations


def schema_digest(name: str) -> str:
    """The digest of the schema in this package by which a data set is read; empty if it has none."""
    from importlib import resources

    from cfbench_core.hashing import digest

    schema = resources.files(__name__) / "schemas" / f"{name}.yaml"
    return digest(schema.read_text("utf-8")) if schema.is_file() else ""
