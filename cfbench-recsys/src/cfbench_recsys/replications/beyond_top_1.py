"""Consistency beyond top-1 (Mohammadi et al. 2025): rankings of explainers at four levels of a recommender's quality.

MovieLens 1M as in the paper; Amazon Fashion and MovieLens 100K in place of Yahoo! Music and Pinterest, whose data are
not public. The small version has MovieLens 100K alone, which is not of the paper: its claims are decided in part.
Three seeds, of the explainers as published and as cfbench improves them, each ranked on its own.
"""

from __future__ import annotations

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis.published_tables import CLAIMS_DATA

SPEC = ComponentSpec(
    id="recsys/replication/beyond-top-1",
    summary="Consistency beyond top-1: stability of rankings over levels of quality (table 1, figure 1)",
    target=f"{__name__}:beyond_top_1",
    papers=("consistency2025",),
)

_SMALL = ("data=ml-100k", "protocol.users=60")
_EXPLAINERS = (
    "explainers=[cosine, jaccard, {{name: lime-rs, variant: {0}}}, {{name: shap, variant: {0}}}, "
    "{{name: accent, variant: {0}}}, {{name: lxr, variant: {0}}}]"
)
_VARIANTS = {"as-published": "paper", "cfbench": "cfbench"}
_SEEDS = (0, 1, 2)
_STUDIES = tuple(f"{name}-{seed}" for name in _VARIANTS for seed in _SEEDS)
_MINUTES = 55 / len(_STUDIES)
"""Of one study on average: 55 were measured for all of them, and each item needs all."""


def beyond_top_1(config: None = None) -> Replication:
    """What is run, and what is printed."""
    return Replication(
        title="Consistency beyond top-1",
        paper="consistency2025",
        analysis="reproduction",
        options={"paper": "beyond-top-1", "other_data": True},
        stored="replication-beyond-top-1",
        studies=tuple(_study(name, seed) for name in _VARIANTS for seed in _SEEDS),
        items=(
            PublishedItem(
                name="table-1",
                caption="POS-P and NEG-P of the first three items, MF",
                studies=_STUDIES,
                stored="small",
                reason="printed for Yahoo! Music, whose data needs a signed agreement: not comparable by value",
            ),
            PublishedItem(
                name="figure-1",
                caption="POS-P@5 over levels of quality, for the first 1, 2, 3 and 5 items, VAE",
                studies=_STUDIES,
                stored="small",
                reason="drawn without numbers",
            ),
            PublishedItem(
                name="claims",
                caption="eight claims of sections 3.3 and 4, and the numbers that decide them",
                studies=_STUDIES,
                rows=("claims", CLAIMS_DATA),
                stored="small",
            ),
        ),
    )


def _study(name: str, seed: int) -> ReplicationStudy:
    common = (_EXPLAINERS.format(_VARIANTS[name]), f"seed={seed}")
    return ReplicationStudy(
        name=f"{name}-{seed}",
        config="cfbench_recsys:replications/beyond_top_1.yaml",
        changes={"small": (*common, *_SMALL), "paper": common},
        minutes={"small": _MINUTES},
    )
