"""The metrics of the recommender suite, as plain data; each has a file of its own in this folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

PAPER_000 = "Eleven counterfactual explainers, from top-1 to top-K (SIGIR 2026)"
PAPER_001 = "Baklanov et al. 2025"
PAPER_002 = "Mohammadi et al. 2025"
LXR = "Barkan et al. 2024"

BOTH, ITEM, LIST = frozenset({"item", "list"}), frozenset({"item"}), frozenset({"list"})


def _specs(
    format: str, level: frozenset[str], paper: str | None, empty: str, *metrics: tuple[str, str, str]
) -> list[ComponentSpec]:
    """Metrics that share format, level, paper and what they do with an empty answer or a short history.

    Each is (name, implementation, summary); "+" behind an implementation: it has options, the class
    ``Config`` in the same file.
    """
    return [
        ComponentSpec(
            id=f"recsys/metric/{name}",
            summary=summary,
            target=f"{__name__}.{target.rstrip('+')}",
            config=f"{__name__}.{target.partition(':')[0]}:Config" if target.endswith("+") else None,
            provides={"format": frozenset({format}), "level": level},
            needs={"explainer": {"format": frozenset({format})}},
            paper=paper,
            details={"unit": "explanation", "empty": empty},
        )
        for name, target, summary in metrics
    ]


_SHORT = "a user with fewer interactions than steps reaches the empty profile early (see Full removal)"
_FEW = "fewer than K_e interactions (or supporting ones): what there is"

METRICS: list[ComponentSpec] = [
    *_specs(
        "implicit",
        BOTH,
        PAPER_000,
        _SHORT,
        ("pos-p", "pos_p:PosP+", "How long the item stays while the most important interactions go"),
        ("neg-p", "neg_p:NegP+", "How long the item stays while the least important interactions go"),
    ),
    *_specs(
        "implicit",
        BOTH,
        PAPER_000,
        "0: all importances equal, or one interaction",
        ("gini", "gini:Gini", "Concentration of the importances"),
    ),
    *_specs(
        "implicit",
        BOTH,
        None,
        "does not depend on the answer",
        (
            "empty-profile-pos-p",
            "empty_profile_pos_p:EmptyProfilePosP+",
            "What compresses POS-P and NEG-P: bias of the model, short histories",
        ),
    ),
    *_specs(
        "implicit",
        ITEM,
        PAPER_001,
        _FEW,
        ("pos-at", "pos_at:PosAt+", "Among the first K_r without the K_e most important interactions"),
        ("cdcg", "cdcg:Cdcg+", "Discounted rank without the K_e most important interactions"),
        ("del", "deletion:Deletion+", "Score without the K_e most important interactions"),
        ("ins", "insertion:Insertion+", "Score with only the K_e most important interactions"),
    ),
    *_specs(
        "implicit",
        ITEM,
        PAPER_002,
        "missing: a user without any interaction has no curve",
        ("curve-pos-p", "curve_pos_p:CurvePosP+", "Among the first T while the most important go one by one"),
        (
            "curve-neg-p",
            "curve_neg_p:CurveNegP+",
            "Among the first T while the least important go one by one",
        ),
    ),
    *_specs(
        "implicit",
        ITEM,
        LXR,
        _SHORT,
        ("lxr-pos-p", "lxr_pos_p:LxrPosP+", "LXR's POS-P, mean of 11 points"),
        ("lxr-neg-p", "lxr_neg_p:LxrNegP+", "LXR's NEG-P, mean of 11 points"),
        ("lxr-ndcg-p", "lxr_ndcg_p:LxrNdcgP", "LXR's NDCG-P, mean of 11 points"),
        ("lxr-del-p", "lxr_del_p:LxrDelP", "LXR's DEL-P, mean of 11 points"),
        ("lxr-ins-p", "lxr_ins_p:LxrInsP", "LXR's INS-P, mean of 11 points"),
    ),
    *_specs(
        "explicit",
        BOTH,
        PAPER_000,
        "0: nothing is edited, nothing displaced",
        ("pn-s", "pn_s:PnS", "Share of the items that leave the list"),
        ("num-edits", "num_edits:NumEdits", "Number of edited edges, #Perturb"),
    ),
    *_specs(
        "explicit",
        LIST,
        PAPER_000,
        "0: nothing is displaced",
        ("pn-r", "pn_r:PnR", "Share of the list that is displaced, its first places weighing more"),
    ),
    *_specs(
        "explicit",
        BOTH,
        None,
        "0: no answer, no success",
        ("coverage", "coverage:Coverage", "Share of units with an answer"),
        ("success-rate", "success_rate:SuccessRate", "Share of units with an answer that works"),
    ),
    *_specs(
        "explicit",
        BOTH,
        None,
        "missing: says nothing about an answer that fails",
        (
            "num-edits-given-success",
            "num_edits_given_success:NumEditsGivenSuccess",
            "Number of edited edges where it works",
        ),
        ("minimality", "minimality:Minimality", "Share of successes in which every edit is needed"),
    ),
    *_specs(
        "explicit",
        ITEM,
        None,
        "its old place",
        ("rank-after", "rank_after:RankAfter", "Place of the item after the edit"),
    ),
]

DEFAULT_METRICS = (
    "pos-p",
    "neg-p",
    "gini",
    "empty-profile-pos-p",
    "pn-s",
    "pn-r",
    "num-edits-given-success",
    "minimality",
    "coverage",
    "success-rate",
    "num-edits",
    "rank-after",
)
"""What is measured where a configuration names no metrics: paper 000, with what one needs to read it rightly."""
