"""CFExpRec (SIGIR 2026): eleven explainers of recommenders, six recommenders, items and lists.

Amazon Fashion and MovieLens 1M as in the paper; Yahoo! Music needs a signed agreement: with its files at hand add it
by ``--set "data=[amazon-fashion, ml-1m, yahoo-music]"``. The small version explains ten users of Amazon Fashion and
leaves out what takes minutes for each explanation or for its training: GREASE and CLEAR as published.
"""

from __future__ import annotations

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(
    id="recsys/replication/cfexprec",
    summary="CFExpRec: eleven explainers of recommenders, item and list level (tables 1 to 6, figures 1 to 6)",
    target=f"{__name__}:cfexprec",
    papers=("cfexprec2026",),
)

_USERS = ("data=amazon-fashion", "protocol.users=10")
_GRAPH = (
    "explainers=[random-edges, grease, {name: cf-gnnexplainer, variant: paper}, cf-gnnexplainer, "
    "{name: cf2, variant: paper}, cf2, clear, {name: unr-explainer, preset: paper}, unr-explainer, "
    "{name: c2explainer, variant: paper}, c2explainer, gradient-greedy]",
    "protocol.users=5",
    "protocol.k=5",
)
_TIMED = (
    "data=amazon-fashion",
    "protocol.users=5",
    "explainers=[{name: lime-rs, variant: paper}, lime-rs, {name: shap, variant: paper}, shap, "
    "{name: prince, variant: paper}, prince, "
    "{name: accent, preset: paper}, accent, {name: lxr, variant: paper}, {name: lxr, preset: auto}, "
    "grease, {name: cf-gnnexplainer, variant: paper}, cf-gnnexplainer, "
    "{name: cf2, variant: paper}, cf2, clear, {name: unr-explainer, preset: paper}, unr-explainer, "
    "{name: c2explainer, variant: paper}, c2explainer]",
)
_YAHOO = "without Yahoo! Music, whose data needs a signed agreement"
_STORED = "500 users"
_DRAWN = "drawn without numbers: not comparable by value"
_DRAWN_OF_ALL = f"{_DRAWN}; {_YAHOO}"
_DRAWN_UNNAMED = f"{_DRAWN}; its caption names no data set"
"""By captions and section 4.4, figures 1, 2, 5 and 6 are of Amazon alone, figure 3 of all data sets; figure 4 names none."""


def cfexprec(config: None = None) -> Replication:
    """What is run, and what is printed."""
    return Replication(
        title="CFExpRec",
        paper="cfexprec2026",
        analysis="reproduction",
        options={"paper": "cfexprec"},
        other_data={"other_data": True},
        seeds=True,
        stored="replication-cfexprec",
        studies=(
            _study("table-2", ("data=amazon-fashion",), 0.2, 0.2),
            _study("table-3", _USERS, 1.4, 17.9),
            _study("table-4", _USERS, 1.3, 16.4),
            _study("table-5", ("data=amazon-fashion", *_GRAPH), 2.8),
            _study("table-6", _TIMED, 7.2),
            _study("figure-1", ("protocol.users=10",), 1.9, 5.4),
            _study("figure-1-diffrec", ("protocol.users=10",), 1.4, 3.5),
            _study("figure-2", _GRAPH, 7.7),
            _study("figures-5-6", _GRAPH, 10.6),
        ),
        items=(
            PublishedItem(
                name="table-1",
                caption="protocols of earlier evaluations",
                reason="a table of other papers' choices; nothing is measured",
            ),
            _item("table-2", "statistics of the data sets", "table-2", _YAHOO, stored="Amazon, ML-1M"),
            _item("table-3", "importances, MF", "table-3", _YAHOO, _STORED),
            _item("table-4", "edits, MF", "table-4", _YAHOO, _STORED),
            _item("table-5", "edits, LightGCN", "table-5", _YAHOO, "50 users"),
            _item(
                "table-6",
                "seconds for an explanation",
                "table-6",
                "times of another machine",
                "5 or 50 users",
            ),
            _item("figure-1", "importances, VAE and DiffRec", "figure-1 figure-1-diffrec", _DRAWN, _STORED),
            _item("figure-2", "edits, GFormer and SimGCL", "figure-2", _DRAWN),
            _item("figure-3", "importances, by place of the item", "table-3", _DRAWN_OF_ALL, _STORED),
            _item("figure-4", "edits, by place of the item", "table-5", _DRAWN_UNNAMED, "50 users"),
            _item("figure-5", "edits of lists, by scope", "figures-5-6 table-5", _DRAWN),
            _item("figure-6", "edits of single items, by scope", "figures-5-6 table-5", _DRAWN),
            _item(
                "claims",
                "headline claims of section 4, with the statistic that decides each",
                "table-3 table-4 table-5 table-6 figure-1 figure-1-diffrec figure-2 figures-5-6",
                "",
                "5 to 500",
            ),
        ),
    )


def _study(name: str, small: tuple[str, ...], minutes: float, of_paper: float = 0.0) -> ReplicationStudy:
    """minutes: of the small version and, where it was measured, of the paper's; models that studies share count for each."""
    return ReplicationStudy(
        name=name,
        config=f"cfbench_recsys:replications/cfexprec-{name}.yaml",
        changes={"small": small, "paper": ()},
        minutes={"small": minutes, "paper": of_paper} if of_paper else {"small": minutes},
    )


def _item(name: str, caption: str, studies: str, reason: str, stored: str = "5 users") -> PublishedItem:
    return PublishedItem(
        name=name, caption=caption, studies=tuple(studies.split()), reason=reason, stored=stored
    )
