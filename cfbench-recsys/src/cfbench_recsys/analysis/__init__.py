"""The analyses of the recommender suite, as plain data; each has a file of its own in this folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

ANALYSES: list[ComponentSpec] = []
