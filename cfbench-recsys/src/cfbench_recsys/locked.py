"""An explainer's edit of one unit when some interactions must stay.

- An explainer of importances is queried as before; its edit is derived from the importances of the other interactions.
- One that searches edits of the user's interactions gets a history without the locked ones, so it cannot propose them;
  they are still no candidates for recommendation. In other scopes it gets a scope without them. An edit that touches a
  locked interaction nevertheless counts as no answer.

Either edit is verified and pruned on the user's real history, as the protocol of the run says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_recsys.edits import Edits

if TYPE_CHECKING:
    from cfbench_core.view.viewers import LiveExplainer


def explain_without(live: LiveExplainer, locked: Collection[int]) -> Edits:
    """The edit (of one unit) without the items ``locked``; no edges where the explainer finds none."""
    chunk, context = live.unit.chunk, live.unit.context
    fixed = np.isin(chunk.targets.history, list(locked)) & ~chunk.targets.padding
    if live.derived is None:
        if chunk.targets.scope in ("user-vector", "user-only"):
            free = np.flatnonzero(~(chunk.targets.padding | fixed)[0])
            if not len(free):
                return Edits.nothing(chunk.targets.users)
            # Left out, not padded: padding is at the end of a history.
            history, padding = chunk.targets.history[:, free], chunk.targets.padding[:, free]
            own = tuple(chunk.targets.history[fixed].tolist())
            targets = replace(chunk.targets, history=history, padding=padding, fixed=own)
        else:
            targets = replace(chunk.targets, locked=tuple(locked))
        # The explainer's own step would verify on what it sees; the answer is verified below, on the whole history.
        settings = {"verify": False, "prune": False}
        edits, _ = context.step("explain")(
            _with_postprocess(context, settings),
            live.explainer,
            chunk.model,
            _with_targets(chunk, targets),
            live.state,
        )
        return _verified(live, _spared(edits, locked, chunk), context.parameters["postprocess"])
    importances, _ = context.step("explain")(context, live.explainer, chunk.model, chunk, live.state)
    settings = live.derived.context.parameters["postprocess"]
    return _verified(live, _derived(live, importances, fixed, settings["derive"]), settings)


def _derived(live: LiveExplainer, importances: Any, fixed: Any, how: str) -> Edits:
    """Among the open interactions in the order of their importance: the shortest prefix that succeeds, or the threshold."""
    from cfbench_recsys.answers import derived

    assert live.derived is not None
    chunk = live.derived.chunk
    free_places = ~fixed & ~chunk.targets.padding
    least = (
        importances.min(initial=0.0, where=free_places) - 1
    )  # the prefix is too short to reach what is last
    last = np.where(chunk.targets.padding, -np.inf, np.where(fixed, least, importances))
    free = int(np.count_nonzero(free_places))
    if not free:
        return Edits.nothing(chunk.targets.users)
    most = chunk.targets.max_edits
    targets = replace(chunk.targets, max_edits=free if most is None else min(most, free))
    return derived(chunk.model, targets, last, chunk.split.profiles, how)


def _spared(edits: Edits, locked: Collection[int], chunk: Any) -> Edits:
    """Nothing, if an own interaction that is locked is edited."""
    own = edits.edge_users == chunk.targets.users[0]
    touched = own & np.isin(edits.edge_items, list(locked))
    return Edits.nothing(chunk.targets.users) if touched.any() else edits


def _verified(live: LiveExplainer, edits: Edits, settings: Any) -> Edits:
    from cfbench_recsys.answers import postprocessed

    chunk = live.scored.chunk
    return postprocessed(chunk.model, chunk.targets, edits, chunk.split.profiles, settings)


def _with_targets(chunk: Any, targets: Any) -> Any:
    return replace(chunk, targets=targets)


def _with_postprocess(context: Any, settings: Any) -> Any:
    """The context of the stage with other settings of the postprocessing."""
    parameters = {**context.task.parameters, "postprocess": settings}
    return type(context)(replace(context.task, parameters=parameters), context.output, context.input_paths)
