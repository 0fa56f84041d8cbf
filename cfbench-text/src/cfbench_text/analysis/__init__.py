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
    ComponentSpec(
        id="text/analysis/gap",
        summary="Does who sounds like the reference say what is true?",
        target="cfbench_text.analysis.gap:Gap",
        paper="Kabongo & Guigue 2025",
    ),
    ComponentSpec(
        id="text/analysis/paper-tables",
        summary="What do the tables of paper 004 look like for these texts?",
        target="cfbench_text.analysis.paper_tables:PaperTables",
        paper="Kabongo & Guigue 2025",
    ),
    ComponentSpec(
        id="text/analysis/examples",
        summary="What did generators write, and which of their statements are true?",
        target="cfbench_text.analysis.examples:Examples",
        config="cfbench_text.analysis.examples:Config",
    ),
)
