"""The analyses that the distribution registers. Data only."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

ANALYSES = (
    ComponentSpec(
        id="text/analysis/corpus",
        summary="What are a generator's texts together: does it repeat itself, what does it cover?",
        target="cfbench_text.analysis.corpus:Corpus",
        paper="Li et al. 2020",
    ),
    ComponentSpec(
        id="text/analysis/topics",
        summary="About what do generators say what is not true, and what do they leave out?",
        target="cfbench_text.analysis.topics:Topics",
    ),
)
