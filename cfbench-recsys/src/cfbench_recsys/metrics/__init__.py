"""The metrics of the recommender suite, as plain data; each has a file of its own in this folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

PAPER_000 = "Eleven counterfactual explainers, from top-1 to top-K (SIGIR 2026)"
PAPER_001 = "Baklanov et al. 2025"
LXR = "Barkan et al. 2024"

BOTH, ITEM, LIST = frozenset({"item", "list"}), frozenset({"item"}), frozenset({"list"})


def _spec(
    name: str, summary: str, target: str, format: str, level: frozenset[str], paper: str | None, empty: str
) -> ComponentSpec:
    """``target`` ends in "+" for a metric that has options: a class ``Config`` in the same module."""
    module = f"cfbench_recsys.metrics.{target.partition(':')[0]}"
    return ComponentSpec(
        id=f"recsys/metric/{name}",
        summary=summary,
        target=f"cfbench_recsys.metrics.{target.rstrip('+')}",
        config=f"{module}:Config" if target.endswith("+") else None,
        provides={"format": frozenset({format}), "level": level},
        needs={"explainer": {"format": frozenset({format})}},
        paper=paper,
        details={"unit": "explanation", "empty": empty},
    )


def _implicit(
    name: str, summary: str, target: str, level: frozenset[str], paper: str | None, empty: str
) -> ComponentSpec:
    return _spec(name, summary, target, "implicit", level, paper, empty)


def _explicit(
    name: str, summary: str, target: str, level: frozenset[str], paper: str | None, empty: str
) -> ComponentSpec:
    return _spec(name, summary, target, "explicit", level, paper, empty)


_SHORT = "a user with fewer interactions than steps reaches the empty profile early (see full removal)"
_FEW = "fewer than K_e interactions (or supporting ones): what there is"

METRICS: list[ComponentSpec] = [
    _implicit("pos-p", "Stay in the list, most important removed first", "pos_p:PosP+", BOTH, PAPER_000, _SHORT),
    _implicit("neg-p", "Stay in the list, least important removed first", "neg_p:NegP+", BOTH, PAPER_000, _SHORT),
    _implicit("gini", "Concentration of the importances", "gini:Gini", BOTH, PAPER_000, "0: all alike, or one"),
    _implicit("floor", "What compresses POS-P and NEG-P", "floor:Floor+", BOTH, None, "not a matter of the answer"),
    _implicit("pos-at", "In the list without the K_e most important", "pos_at:PosAt+", ITEM, PAPER_001, _FEW),
    _implicit("cdcg", "Discounted rank without the K_e most important", "cdcg:Cdcg+", ITEM, PAPER_001, _FEW),
    _implicit("del", "Score without the K_e most important", "deletion:Deletion+", ITEM, PAPER_001, _FEW),
    _implicit("ins", "Score with only the K_e most important", "insertion:Insertion+", ITEM, PAPER_001, _FEW),
    _implicit("lxr-pos-p", "LXR's POS-P, mean of 11 points", "lxr_pos_p:LxrPosP+", ITEM, LXR, _SHORT),
    _implicit("lxr-neg-p", "LXR's NEG-P, mean of 11 points", "lxr_neg_p:LxrNegP+", ITEM, LXR, _SHORT),
    _implicit("lxr-ndcg-p", "LXR's NDCG-P, mean of 11 points", "lxr_ndcg_p:LxrNdcgP", ITEM, LXR, _SHORT),
    _implicit("lxr-del-p", "LXR's DEL-P, mean of 11 points", "lxr_del_p:LxrDelP", ITEM, LXR, _SHORT),
    _implicit("lxr-ins-p", "LXR's INS-P, mean of 11 points", "lxr_ins_p:LxrInsP", ITEM, LXR, _SHORT),
    _explicit("pn-s", "Share of the items pushed out of the list", "pn_s:PnS", BOTH, PAPER_000, "0: displaces nothing"),
    _explicit("pn-r", "PN-S that weighs the first places more", "pn_r:PnR", LIST, PAPER_000, "0: displaces nothing"),
    _explicit("edits", "Number of edited edges", "edits:Perturbations", BOTH, PAPER_000, "0 edits"),
    _explicit("coverage", "Share of units with an answer", "coverage:Coverage", BOTH, None, "0: no answer"),
    _explicit("success-rate", "Share of answers that work", "success_rate:SuccessRate", BOTH, None, "0: no success"),
    _explicit(
        "edits-of-successes",
        "Number of edited edges, where it works",
        "edits_of_successes:EditsOfSuccesses",
        BOTH,
        None,
        "missing: no success",
    ),
    _explicit(
        "minimality",
        "Share of successes in which every edit is needed",
        "minimality:Minimality",
        BOTH,
        None,
        "missing: no success",
    ),
]
