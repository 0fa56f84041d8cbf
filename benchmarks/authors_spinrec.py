"""SPINRec's authors' loop for ``authors_native.py``, from the notebooks of their repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from authors_native_loops import Runs, cells


def spinrec(checkout: Path, targets: Any, context: Any) -> Runs:
    """``find_ip_mask`` and ``single_user_metrics`` of the notebooks are theirs; the users where paths start are ours.

    Of the ten explanations of a unit, theirs is the one with the smallest DEL, as in their table of this metric.
    """
    from cfbench_explainers_native.spinrec import Config, SPINRec
    from cfbench_recsys.links import link_of

    model, items, config = context.model, context.training.shape[1], Config()

    class Recommender(torch.nn.Module):
        def forward(self, profile: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
            """The values of the rows of ``wanted``, which are all items, or of the one item that it marks."""
            scores = model.score_dense(profile.double()[None])[0]
            values = scores.sigmoid() if link_of(model) == "sigmoid" else scores.softmax(dim=0)
            return wanted.double() @ values

    names: dict[str, Any] = {"torch": torch, "np": np}
    for notebook in ("SPINRec_functions.ipynb", "help_functions.ipynb"):
        for source in cells(checkout, notebook):
            if "def " in source:
                exec(source, names)  # the authors' definitions
    recommender, identity = Recommender(), torch.eye(items)
    options = {
        "device": "cpu",
        "num_items": items,
        "all_items_tensor": identity,
        "output_type": "single",
        "recommender_name": "MLP",
    }
    method = SPINRec(config)

    def theirs() -> np.ndarray:
        found = np.zeros(targets.history.shape)
        for unit, user in enumerate(targets.users.tolist()):
            item = int(targets.items[unit, 0])
            profile = context.interactions[[user]].toarray()[0].astype(int)
            starts = method._starts(user, context)
            best, smallest = {}, np.inf
            for start in starts:
                own = torch.FloatTensor(profile)
                answer = names["find_ip_mask"](
                    recommender,
                    own,
                    item,
                    identity,
                    config.steps,
                    "sample_random_user",
                    "cpu",
                    "MLP",
                    start[None],
                    None,
                )
                ordered = sorted(answer.items(), key=lambda pair: pair[1], reverse=True)
                with torch.no_grad():
                    measured = names["single_user_metrics"](
                        profile, own, item, identity[item], 10, recommender, ordered, **options
                    )
                if measured[0].mean() < smallest:
                    best, smallest = answer, measured[0].mean()
            for place in np.flatnonzero(~targets.padding[unit]):
                found[unit, place] = float(best[int(targets.history[unit, place])])
        return found

    return lambda: method.importances(targets, context), theirs
