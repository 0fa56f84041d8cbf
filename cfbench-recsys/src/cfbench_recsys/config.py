"""The configuration of a recommender experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from cfbench_core.config import ConfiguredComponent, Distinct, Help, InputFile, OfKind, Range
from cfbench_core.errors import UserError
from cfbench_core.suites import Experiment
from cfbench_recsys.scope_labels import scope_labels
from cfbench_recsys.splits import SplitConfig


@dataclass(frozen=True, kw_only=True)
class Postprocess:
    """What becomes of an explicit answer before it is scored."""

    derive: Annotated[
        Literal["smallest-prefix", "threshold", "none"],
        Help(
            "explicit answers of implicit methods, unless the method has an option of this name: smallest prefix that"
            " succeeds, importance above 0.5, or none"
        ),
    ] = "smallest-prefix"
    verify: Annotated[bool, Help("an edit that displaces nothing on the real model is no answer")] = True
    prune: Annotated[bool, Help("revert edits that are not needed for the success")] = False


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """At which levels of quality each recommender that is trained in epochs is explained (Consistency beyond top-1)."""

    training: Annotated[
        tuple[float, ...],
        Range(above=0, maximum=1),
        Distinct(),
        Help("shares of the training: 0.25 becomes the model 'mf@25%'"),
    ] = ()
    quality: Annotated[
        tuple[float, ...],
        Range(above=0, maximum=1),
        Distinct(),
        Help("shares of the best validation HR@10: 0.8 becomes the model 'mf@q80%'"),
    ] = ()

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise UserError(f"two shares are called {twice[0]}, to six digits; leave one out")

    @property
    def names(self) -> list[str]:
        """["25%", "q80%"]: what stands behind the name of a model, see ``checkpoints.py``."""
        return [
            *(f"{100 * share:g}%" for share in self.training),
            *(f"q{100 * share:g}%" for share in self.quality),
        ]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What is explained, and in which form."""

    k: Annotated[tuple[int, ...], Range(minimum=1), Distinct(), Help("lengths of the lists")] = (5,)
    level: Annotated[tuple[Literal["item", "list"], ...], Help("one explanation per item, or per list")] = (
        "item",
        "list",
    )
    format: Annotated[
        tuple[Literal["implicit", "explicit"], ...], Help("importances, or interactions to edit")
    ] = ("implicit", "explicit")
    scope: Annotated[
        tuple[Literal["user-only", "indirect", "k-hop", "full"] | Mapping[str, Any], ...],
        Help(
            "edges of a graph recommender that may be edited, {k-hop: 2} with its levels (3 unless given);"
            " of other recommenders it is the user's profile"
        ),
    ] = ("user-only",)
    max_edits: Annotated[
        tuple[int | None, ...],
        Range(minimum=1),
        Distinct(),
        Help("edits of an explicit answer at most, the same for all explainers; null: any number"),
    ] = (100,)
    edits: Annotated[
        tuple[Literal["remove", "remove-or-add"], ...],
        Help(
            "what explicit answers may do; in a table of its own, for fewer edits suffice where some are added"
        ),
    ] = ("remove",)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    users: Annotated[int, Range(minimum=1), Help("how many users are explained, drawn at random")] = 500
    users_file: Annotated[
        str | None, InputFile(), Help("explain these in place of a draw: a CSV file with a column user")
    ] = None
    postprocess: Postprocess = field(default_factory=Postprocess)

    def __post_init__(self) -> None:
        for axis in ("k", "level", "format", "scope", "max_edits", "edits"):
            if not getattr(self, axis):
                raise UserError(f"{axis}: must have at least one value")
        scope_labels(self.scope)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The labels of the scopes: ("user-only", "k-hop-3")."""
        return scope_labels(self.scope)


@dataclass(frozen=True, kw_only=True)
class RecsysConfig(Experiment):
    """``suite: recsys``."""

    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset")]
    split: SplitConfig = field(default_factory=SplitConfig)
    recommenders: Annotated[tuple[ConfiguredComponent, ...], OfKind("recommender")]
    explainers: Annotated[tuple[ConfiguredComponent, ...], OfKind("explainer")]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None,
        OfKind("metric"),
        Help("none: those of CFExpRec with coverage and success"),
    ] = None
