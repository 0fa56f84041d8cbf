"""The authors' loops for ``authors_native.py``: adapters that present a recommender of the suite to their code.

Each function returns two callables, for our paper variant and for the authors' loop.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import fmin_ncg
from torch.nn.functional import softplus

from cfbench_recsys.edits import Edits
from cfbench_recsys.scoring import score_once

Runs = tuple[Callable[[], Any], Callable[[], Any]]


def imported(checkout: Path, module: str) -> Any:
    """A module of a checkout, which is put in front of the search path."""
    sys.path.insert(0, str(checkout))
    return importlib.import_module(module)


def removals(targets: Any, chosen: list[list[int]]) -> Edits:
    """Edits that remove the items ``chosen`` for each unit."""
    removed = np.zeros(targets.history.shape, dtype=np.bool_)
    for unit, items in enumerate(chosen):
        removed[unit] = np.isin(targets.history[unit], items) & ~targets.padding[unit]
    return Edits.removals(targets.users, targets.history, removed)


def accent(checkout: Path, targets: Any, context: Any) -> Runs:
    """``AccentTemplate.try_replace`` is theirs. The influences are theirs by formula: autograd, Newton-CG of SciPy.

    Their model is TensorFlow 1. Hessian-vector products by automatic differentiation of the loss over the examples of
    the user and of the item, ``fmin_ncg`` from the gradient with avextol 1e-3 and at most 100 steps, damping 1e-6, weight
    decay 1e-3. The list of an item begins at it.
    """
    from cfbench_explainers_native.accent import Accent, Config

    template = imported(checkout, "commons.accent_template")
    template.np = np  # the module uses NumPy without importing it
    replace = template.AccentTemplate.try_replace
    Q = torch.from_numpy(context.model.item_embeddings())
    known = np.flatnonzero(np.diff(context.training.indptr))
    P = torch.from_numpy(context.model.profile_embeddings(context.training[known].astype(float)))
    columns = context.training[known].tocsc()
    scores = score_once(context.model, Edits.nothing(targets.users), context.interactions)

    def influences(own: torch.Tensor, history: np.ndarray, item: int) -> np.ndarray:
        others = P[torch.from_numpy(columns[:, [item]].indices.astype(np.int64))]
        d = len(own)

        def loss(theta: torch.Tensor, examples: torch.Tensor) -> torch.Tensor:
            return softplus(-examples).mean() + 1e-3 / 2 * (theta @ theta)

        def logits(theta: torch.Tensor) -> torch.Tensor:
            return torch.cat([Q[history] @ theta[:d], others @ theta[d:]])

        theta = torch.cat([own, Q[item]]).requires_grad_()
        (slope,) = torch.autograd.grad(loss(theta, logits(theta)), theta, create_graph=True)

        def product(vector: np.ndarray) -> np.ndarray:
            v = torch.from_numpy(vector)
            (found,) = torch.autograd.grad(slope @ v, theta, retain_graph=True)
            return (found + 1e-6 * v).numpy()

        (of_score,) = torch.autograd.grad(theta[:d] @ theta[d:], theta)
        v = of_score.numpy()
        direction = fmin_ncg(
            f=lambda x: 0.5 * product(x) @ x - v @ x,
            x0=v,
            fprime=lambda x: product(x) - v,
            fhess_p=lambda x, p: product(p),
            avextol=1e-3,
            maxiter=100,
            disp=False,
        )
        n = len(history) + len(others)
        found = []
        for place in range(len(history)):
            one = logits(theta)[place : place + 1]
            (gradient,) = torch.autograd.grad(loss(theta, one), theta)
            found.append(float(gradient.numpy() @ direction) / n)
        return -np.array(found)

    def theirs() -> Edits:
        chosen: list[list[int]] = []
        for unit, user in enumerate(targets.users.tolist()):
            history = targets.history[unit][~targets.padding[unit]]
            own = torch.from_numpy(
                context.model.profile_embeddings(context.interactions[[user]].astype(float))[0]
            )
            open_scores = scores[unit].copy()
            open_scores[history] = -np.inf
            ranked = np.argsort(-open_scores, kind="stable").tolist()
            start = ranked.index(int(targets.items[unit, 0]))
            listed = ranked[start : start + targets.k]
            found = np.array([influences(own, history, item) for item in listed])
            best, best_gap = None, 1e9
            for i in range(1, len(listed)):
                gap = scores[unit, listed[0]] - scores[unit, listed[i]]
                with contextlib.redirect_stdout(io.StringIO()):
                    removed, left = replace(listed[i], gap, found[0] - found[i])
                if removed is not None and (
                    best is None
                    or len(removed) < len(best)
                    or (len(removed) == len(best) and left < best_gap)
                ):
                    best, best_gap = removed, left
            chosen.append([int(history[place]) for place in best or ()])
        return removals(targets, chosen)

    return lambda: Accent(Config(variant="paper")).counterfactuals(targets, context), theirs


def cells(checkout: Path, notebook: str) -> list[str]:
    """The sources of the code cells of a notebook."""
    document = json.loads((checkout / "code" / notebook).read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def lime_rs(checkout: Path, targets: Any, context: Any) -> Runs:
    """``LimeRSExplainer.explain_instance`` is theirs, with the package lime; the neighbours are ours."""
    import pandas as pd

    from cfbench_explainers_native.lime_rs import Config, LimeRS
    from cfbench_explainers_native.lime_rs_paper import neighbours

    np.float = float  # type: ignore[attr-defined]  # their code is of a time when NumPy had it
    theirs_module = imported(checkout, "src.lime_rs")
    frequencies = np.bincount(context.training.indices, minlength=context.training.shape[1])
    users, items = context.training.nonzero()
    frame = pd.DataFrame({"user_id": users.astype(str), "item_id": items.astype(str)})
    scores = score_once(context.model, Edits.nothing(targets.users), context.interactions)

    def theirs() -> np.ndarray:
        found = np.zeros(targets.history.shape)
        for unit, user in enumerate(targets.users.tolist()):
            item = int(targets.items[unit, 0])
            drawn = neighbours(user, item, frequencies, 1000, context)
            names = [f"item_id_{j}" for j in np.unique(np.append(drawn, item))]
            columns = pd.Index([f"user_id_{user}", *names])

            class Recommender:
                one_hot_columns = columns

                @staticmethod
                def predict(pairs: Any, unit: int = unit) -> list[float]:
                    return scores[unit, pairs["item_id"].astype(int)].tolist()

            class Explainer(theirs_module.LimeRSExplainer):  # type: ignore[name-defined, misc]
                samples = pd.DataFrame({"user_id": str(user), "item_id": [str(item), *map(str, drawn)]})

                def generate_neighborhood(self, instance: Any, entity: str, num_samples: int) -> Any:
                    return self.samples

            explainer = Explainer(
                frame, columns, dict(enumerate(columns)), mode="regression", feature_selection="none"
            )
            instance = pd.Series({"user_id": str(user), "item_id": str(item)})
            answer = explainer.explain_instance(instance, Recommender, "item", labels=[0], num_samples=1000)
            of_item = {columns[place]: value for place, value in answer.local_exp[0]}
            for place in np.flatnonzero(~targets.padding[unit]):
                found[unit, place] = of_item.get(f"item_id_{targets.history[unit, place]}", 0.0)
        return found

    return lambda: LimeRS(Config(variant="paper")).importances(targets, context), theirs


def shap(checkout: Path, targets: Any, context: Any) -> Runs:
    """``MLP`` and ``MLPWrapper`` of the notebook are theirs, with the package shap; clusters and background are ours."""
    import shap as package

    from cfbench_explainers_native.shap import Config, Shap
    from cfbench_explainers_native.shap_paper import PaperOptions, PaperShap, clusters_of

    clusters = clusters_of(context.training, 10, context.generator("shap", "clusters"))
    background = PaperShap(PaperOptions())._background(clusters, context)
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "np": np}
    for source in cells(checkout, "MLP_SHAP_clusters.ipynb"):
        if source.startswith(("class MLP(", "class MLPWrapper(")):
            exec(source, names)  # the authors' definitions
    count, state = context.training.shape[1], context.model.state()
    wrapper = names["MLPWrapper"](
        len(state["profile.bias"]),
        {cluster: np.flatnonzero(clusters == cluster).tolist() for cluster in range(10)},
        "cpu",
        count,
        None,
        np.eye(count, dtype=np.float32),
        "single",
        "MLP",
    )
    with torch.no_grad():
        wrapper.users_fc.weight.copy_(torch.from_numpy(state["profile.weight"]))
        wrapper.users_fc.bias.copy_(torch.from_numpy(state["profile.bias"]))
        wrapper.items_fc.weight.copy_(torch.from_numpy(state["item.weight"]))
        wrapper.items_fc.bias.copy_(torch.from_numpy(state["item.bias"]))
    rows = np.insert(background.clusters.astype(int), 0, background.items, axis=1)

    def theirs() -> np.ndarray:
        with torch.no_grad():
            explainer = package.KernelExplainer(lambda batch: wrapper(batch.astype(int)), rows)
            found = np.zeros(targets.history.shape)
            for unit, items in enumerate(targets.items):
                history = targets.history[unit, ~targets.padding[unit]]
                own = np.isin(np.arange(10), clusters[history]).astype(int)
                values = explainer.shap_values(np.insert(own, 0, items[0]), l1_reg=False, silent=True)
                found[unit, : len(history)] = values[1:][clusters[history]]
            return found

    return lambda: Shap(Config(variant="paper")).importances(targets, context), theirs


EPOCHS = 5


def lxr(checkout: Path, targets: Any, context: Any) -> Runs:
    """``Explainer`` and ``LXR_loss`` of the notebook are theirs; five epochs from the same weights in the same order.

    No epoch is selected, so that both end with the last one. Theirs computes in float32, ours partly in float64.
    """
    import dataclasses

    from cfbench_explainers_native import lxr_paper
    from cfbench_explainers_native.lxr import LXR, Config
    from cfbench_explainers_native.lxr_training import Lessons
    from cfbench_recsys.links import link_of

    model, items = context.model, context.training.shape[1]
    defaults = lxr_paper.PaperOptions()

    def recommender_run(profiles: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        scores = model.score_dense(profiles.double())
        return scores.sigmoid() if link_of(model) == "sigmoid" else scores.softmax(dim=1)

    names: dict[str, Any] = {
        "torch": torch,
        "nn": torch.nn,
        "device": "cpu",
        "output_type": "multiple",
        "recommender_run": recommender_run,
        "recommender": None,
        "kw_dict": {},
    }
    for source in cells(checkout, "LXR_training.ipynb"):
        if source.startswith(("class Explainer(", "class LXR_loss(")):
            exec(source, names)  # the authors' definitions

    def theirs() -> np.ndarray:
        users = np.flatnonzero(np.diff(context.training.indptr))
        drawn = context.generator("lxr", "validation").permutation(len(users))
        lessons = Lessons.of(context, users[drawn], 1)
        random = context.generator("lxr", "fit")
        start = lxr_paper.initial(items, defaults.hidden, random)
        explainer = names["Explainer"](items, items, defaults.hidden)
        layers = {
            "profile": explainer.users_fc,
            "item": explainer.items_fc,
            "hidden": explainer.bottleneck[1],
            "output": explainer.bottleneck[3],
        }
        with torch.no_grad():
            for name, layer in layers.items():
                weight = torch.from_numpy(start[f"{name}.weight"])
                layer.weight.copy_(weight if name == "output" else weight.T)
                layer.bias.copy_(torch.from_numpy(start[f"{name}.bias"]))
        optimizer = torch.optim.Adam(explainer.parameters(), defaults.learning_rate)
        criterion = names["LXR_loss"](defaults.lambda_pos, defaults.lambda_neg, defaults.alpha)
        for _ in range(EPOCHS):
            order = random.permutation(len(lessons))
            for first in range(0, len(order), defaults.batch):
                rows = order[first : first + defaults.batch]
                random.integers(0, lessons.counts[rows])  # ours draws a place of the list here
                profiles = torch.from_numpy(lessons.profiles[rows].toarray().astype(np.float32))
                wanted = lessons.lists[rows, 0]
                one_hot = torch.eye(items)[torch.from_numpy(wanted)]
                optimizer.zero_grad()
                criterion(profiles, one_hot, wanted, explainer(profiles, one_hot))[0].backward()
                optimizer.step()
        found = np.zeros(targets.history.shape)
        with torch.no_grad():
            for unit, user in enumerate(targets.users.tolist()):
                profile = torch.from_numpy(context.interactions[[user]].toarray().astype(np.float32))
                masks = explainer(profile, torch.eye(items)[torch.from_numpy(targets.items[unit])])[0].numpy()
                held = ~targets.padding[unit]
                found[unit, held] = masks[targets.history[unit, held]]
        return found

    def ours() -> np.ndarray:
        method = LXR(Config(variant="paper", paper=lxr_paper.PaperOptions(epochs=EPOCHS), validation=0))
        state = method.prepare(context)
        return method.importances(targets, dataclasses.replace(context, state=state))

    return ours, theirs


def prince(checkout: Path, targets: Any, context: Any) -> Runs:
    """Their ``CFE`` and push, on the graph of ours: no other explained user, no self-loop at the user, equal weights.

    PageRank is their recommender, so its first item is explained. Rivals that it prefers from the start are left out.
    """
    import networkx

    from cfbench_explainers_native.prince import Config, Prince

    alpha, eps, count = 0.15, 1e-7, 10
    method = Prince(Config(variant="paper", alpha=alpha, candidates=count))
    proposals: list[list[np.ndarray]] = []

    def ours() -> Edits:
        proposals[:] = method._proposals(targets, context)
        return removals(
            targets,
            [
                targets.history[unit, found[0]].tolist() if found else []
                for unit, found in enumerate(proposals)
            ],
        )

    def theirs() -> Edits:
        push = imported(checkout, "local_push")
        names: dict[str, Any] = {"__name__": "cfe_generator"}
        source = (checkout / "cfe_generator.py").read_text(encoding="utf-8")
        exec(source.replace("print message", "pass"), names)  # Python 2
        first = np.unique(targets.users, return_index=True)[1]
        rivals = dict(
            zip(targets.users[first], method._next_items(targets.take(first), context).tolist(), strict=True)
        )
        base = networkx.DiGraph()
        for user, item in zip(*(part.tolist() for part in context.training.nonzero()), strict=True):
            base.add_edge(("u", user), ("i", item))
            base.add_edge(("i", item), ("u", user))
        chosen: list[list[int]] = [[] for _ in range(len(targets))]
        for user in targets.users[first].tolist():
            units = np.flatnonzero(targets.users == user)
            graph, me = base.copy(), ("u", user)
            history = targets.history[units[0], ~targets.padding[units[0]]].tolist()
            for item in history:
                graph.add_edge(me, ("i", item))
                graph.add_edge(("i", item), me)
            for node in graph:
                for _, other in graph.out_edges(node):
                    graph[node][other]["weight"] = 1.0 / graph.out_degree(node)
            items = [("i", item) for item in [*targets.items[units, 0].tolist(), *rivals[user]]]
            items = [item for item in items if item in graph]
            generator = names["CFE"](graph, {}, {}, alpha, eps)
            generator.compute_pagerank_wo_u(me, items)
            scores = {
                item: sum(generator.p_no_u[item].get(("i", own), 0.0) for own in history) for item in items
            }
            for unit in units.tolist():
                own = ("i", int(targets.items[unit, 0]))
                lower = [
                    ("i", r)
                    for r in rivals[user]
                    if ("i", r) in scores and scores[("i", r)] <= scores.get(own, 0)
                ]
                if own in scores and lower:
                    found = generator.cfe_item_centric_algo_poly(me, own, [own, *lower])[0]
                    chosen[unit] = [node[1] for node in found]
        del push
        return removals(targets, chosen)

    return ours, theirs


LOOPS: dict[str, Callable[[Path, Any, Any], Runs]] = {
    "accent": accent,
    "lime-rs": lime_rs,
    "shap": shap,
    "lxr": lxr,
    "prince": prince,
}
