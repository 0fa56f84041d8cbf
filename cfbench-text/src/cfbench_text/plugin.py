"""What cfbench-text registers. Data only: importing it imports neither NumPy nor torch."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec
from cfbench_text.analysis import ANALYSES
from cfbench_text.datasets import DATASETS
from cfbench_text.models import ASKS_A_MODEL, PRETRAINED, PRETRAINED_METRICS

HERE = "cfbench_text"
STUDY = "Kabongo & Guigue 2025"
BY_ENTAILMENT = {"judge": {"verdict": frozenset({"entailment"})}}
BY_SUPPORT = {"judge": {"verdict": frozenset({"support"})}}
SEES_REFERENCES = {"sees": frozenset({"references"})}
TRAINED = {"default": False}
"""Takes minutes and the extra ``torch``, so it is not in a run without a configuration."""


def _spec(
    kind: str, name: str, implementation: str, summary: str, options: bool = False, **more: object
) -> ComponentSpec:
    """A component of this distribution; its configuration, if any, is the ``Config`` of the same file."""
    module = f"{HERE}.{kind}s.{name.replace('-', '_')}"
    return ComponentSpec(
        id=f"text/{kind}/{name}",
        summary=summary,
        target=f"{module}:{implementation}",
        config=f"{module}:Config" if options else None,
        **more,  # type: ignore[arg-type]
    )


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="text/suite/text",
            summary="Is the reason that a recommender wrote true? Statements against the user's own review",
            target=f"{HERE}.suite:TextSuite",
            paper=STUDY,
            details={"conformance": f"{HERE}.testing:checks", "compared": "generator"},
        ),
        *ANALYSES,
        *PRETRAINED,
        _spec("extractor", "rules", "Rules", "Clauses with a keyword of a topic; sentiment by VADER", True),
        _spec("extractor", "template", "Template", "The exact inverse of the suite's own paragraphs"),
        _spec(
            "judge",
            "overlap",
            "Overlap",
            "Topic, sentiment and tf-idf of words: compares words, not meaning",
            provides={"verdict": frozenset({"entailment", "support"})},
        ),
        _spec("generator", "item-review", "ItemReview", "What the latest reviewer of the item said of it"),
        _spec(
            "generator",
            "most-frequent",
            "MostFrequent",
            "What is said most often: at all, of the item, or by the user",
            True,
            role="floor",
        ),
        _spec(
            "generator",
            "shuffled-reference",
            "ShuffledReference",
            "The true explanation of another row",
            provides=SEES_REFERENCES,
            role="floor",
        ),
        _spec(
            "generator",
            "reference",
            "Reference",
            "The true explanation itself",
            provides=SEES_REFERENCES,
            role="bound",
        ),
        ComponentSpec(
            id="text/generator/round-trip",
            summary="The true explanation, read by the extractor alone: what the extraction loses",
            target=f"{HERE}.generators.reference:Reference",
            provides=SEES_REFERENCES,
            role="bound",
            details={"read": "extractor"},
        ),
        _spec(
            "generator",
            "nrt",
            "NRT",
            "A recurrent network that starts from user, item and the rating it predicts",
            True,
            paper="Li et al. 2017",
            details=TRAINED,
        ),
        _spec(
            "generator",
            "att2seq",
            "Att2Seq",
            "A recurrent network that looks back at user and item at every word",
            True,
            paper="Dong et al. 2017",
            details=TRAINED,
        ),
        _spec(
            "generator",
            "peter",
            "PETER",
            "A transformer over user, item and text that also tells the rating and the words to come",
            True,
            paper="Li et al. 2021",
            details=TRAINED,
        ),
        _spec(
            "generator",
            "cer",
            "CER",
            "PETER whose rating must be told from its explanation, too",
            True,
            paper="Raczyński et al. 2023",
            details=TRAINED,
        ),
        _spec(
            "generator",
            "pepler",
            "PEPLER",
            "A pretrained language model prompted with vectors of user and item",
            True,
            paper="Li et al. 2023",
            details=ASKS_A_MODEL,
        ),
        _spec(
            "generator",
            "xrec",
            "XRec",
            "A frozen language model told of user and item by graph vectors and by profiles",
            True,
            paper="Ma et al. 2024",
            details=ASKS_A_MODEL,
        ),
    ]


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return list(DATASETS)


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    return [
        _spec(
            "metric",
            "hallucination",
            "Hallucination",
            "Shares of statements that are wrong, denied, or missing",
            needs=BY_ENTAILMENT,
        ),
        _spec(
            "metric",
            "st2exp",
            "St2Exp",
            "Does the other side's text support each statement?",
            True,
            needs=BY_SUPPORT,
            paper=STUDY,
        ),
        _spec(
            "metric",
            "stent",
            "StEnt",
            "How surely does the other side entail each statement?",
            needs=BY_ENTAILMENT,
            paper=STUDY,
        ),
        _spec(
            "metric",
            "stent-bin",
            "StEntBin",
            "How many statements does the other side entail?",
            needs=BY_ENTAILMENT,
            paper=STUDY,
        ),
        _spec(
            "metric",
            "stcoh",
            "StCoh",
            "Entailment less contradiction of each statement",
            needs=BY_ENTAILMENT,
            paper=STUDY,
        ),
        _spec(
            "metric",
            "one-to-one",
            "OneToOne",
            "Entailment where a statement supports one statement only",
            True,
            needs=BY_ENTAILMENT,
        ),
        _spec("metric", "fmr", "FMR", "Are the user's keywords in the text?", paper="Li et al. 2020"),
        _spec(
            "metric", "bleu", "BLEU", "Word sequences shared with the reference", paper="Papineni et al. 2002"
        ),
        _spec("metric", "rouge", "ROUGE", "Words shared with the reference", paper="Lin 2004"),
        _spec(
            "metric",
            "meteor",
            "METEOR",
            "Words, stems and synonyms shared with the reference, in its order",
            True,
            paper="Banerjee & Lavie 2005",
            details={"default": False},
        ),
        *PRETRAINED_METRICS,
    ]
