"""Components that ask a pretrained model, as data, and what they share: loading, kept answers, chat, encoders.

None of them is in a run without a configuration: the model is the user's choice.
"""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

ASKS_A_MODEL = {"default": False, "pretrained": True}


def _spec(
    kind: str, name: str, implementation: str, summary: str, paper: str, **more: object
) -> ComponentSpec:
    module = f"cfbench_text.{kind}s.{name.replace('-', '_')}"
    return ComponentSpec(
        id=f"text/{kind}/{name}",
        summary=summary,
        target=f"{module}:{implementation}",
        config=f"{module}:Config",
        paper=paper,
        details=ASKS_A_MODEL,
        **more,  # type: ignore[arg-type]
    )


STUDY = "Kabongo & Guigue 2025"
PRETRAINED = (
    _spec(
        "extractor",
        "llm",
        "LLMExtractor",
        "A chat model lists atomic statements with topic and sentiment",
        STUDY,
    ),
    _spec(
        "judge",
        "llm",
        "LLMJudge",
        "A chat model says whether a text supports a statement",
        STUDY,
        provides={"verdict": frozenset({"support"})},
    ),
    _spec(
        "judge",
        "similarity",
        "Similarity",
        "Topic, sentiment and sentence embeddings: what is alike, not what follows",
        "Reimers & Gurevych 2019",
        provides={"verdict": frozenset({"entailment", "support"})},
    ),
    _spec(
        "judge",
        "nli",
        "NLI",
        "A natural-language-inference model: entailed, contradicted or neutral",
        STUDY,
        provides={"verdict": frozenset({"entailment", "support"})},
    ),
)
PRETRAINED_METRICS = (
    _spec(
        "metric", "bertscore", "BERTScore", "Is each word like one of the other text?", "Zhang et al. 2020"
    ),
    _spec("metric", "sts", "STS", "Are text and reference about the same?", "Reimers & Gurevych 2019"),
    _spec("metric", "summac-zs", "SummaCZS", "Sentences that the other text entails", "Laban et al. 2022"),
    _spec(
        "metric",
        "summac-conv",
        "SummaCConv",
        "The same with a trained head, which has a floor of 0.20",
        "Laban et al. 2022",
    ),
    _spec("metric", "bartscore", "BARTScore", "How likely is one text, given the other?", "Yuan et al. 2021"),
    _spec(
        "metric",
        "bleurt",
        "BLEURT",
        "How would people rate the text beside the reference?",
        "Sellam et al. 2020",
    ),
    _spec(
        "metric",
        "alignscore",
        "AlignScore",
        "Sentences that the other text contains, by a model trained for that",
        "Zha et al. 2023",
    ),
    _spec(
        "metric",
        "seval",
        "SEval",
        "A chat model divides both texts and checks each statement",
        "Herserant & Guigue 2025",
    ),
    _spec(
        "metric",
        "questeval",
        "QuestEval",
        "Does the other text answer questions about a text alike?",
        "Scialom et al. 2021",
    ),
)
