"""Explanations of recommenders on a second device are those on the CPU: every tensor is made where the model is."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from cfbench_explainers_native import accent, grease, leave_one_out, lime_rs, lxr, shap, spinrec
from cfbench_recsys.devices import on_device_of
from cfbench_recsys.edits import Edits
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders import als, diffrec, gformer, lightgcn, mf, ncf, simgcl, vae
from cfbench_recsys.targets import Answer, Context, Targets
from cfbench_recsys.testing import world
from cfbench_recsys.testing.second_device import second_device

USERS = world.ORDINARY
OF_PROFILES: dict[str, Callable[[], Any]] = {
    "als": lambda: als.ALS(als.Config(dimensions=4)),
    "diffrec": lambda: diffrec.DiffRec(diffrec.Config(hidden=4, epochs=1)),
    "mf": lambda: mf.MF(mf.Config(dimensions=4, epochs=1)),
    "ncf": lambda: ncf.NCF(ncf.Config(epochs=1)),
    "vae": lambda: vae.VAE(vae.Config(epochs=1)),
}
OF_GRAPHS: dict[str, Callable[[], Any]] = {
    "gformer": lambda: gformer.GFormer(gformer.Config(epochs=1)),
    "lightgcn": lambda: lightgcn.LightGCN(lightgcn.Config(dimensions=4, epochs=1)),
    "simgcl": lambda: simgcl.SimGCL(simgcl.Config(dimensions=4, epochs=1)),
}
ON_PROFILES: dict[str, Callable[[], Any]] = {
    "accent, influence": lambda: accent.Accent(accent.Config(effect="influence")),
    "leave-one-out": lambda: leave_one_out.LeaveOneOut(leave_one_out.Config()),
    "lime-rs": lambda: lime_rs.LimeRS(lime_rs.Config(samples=20)),
    "lxr": lambda: lxr.LXR(lxr.Config(epochs=1)),
    "shap": lambda: shap.Shap(shap.Config(samples=20)),
    "spinrec": lambda: spinrec.SPINRec(spinrec.Config()),
}
ON_GRAPHS: dict[str, Callable[[], Any]] = {
    "accent": lambda: accent.Accent(accent.Config()),
    "accent, influence": lambda: accent.Accent(accent.Config(effect="influence")),
    "grease": lambda: grease.Grease(grease.Config()),
    "grease, paper": lambda: grease.Grease(
        grease.Config(variant="paper", paper=grease.PaperOptions(hidden=8, surrogate_steps=5, steps=4))
    ),
}
CHOOSING_A_DEVICE = ("diffrec", "graph_convolution", "ncf", "trained_on_profiles", "vae")


@contextmanager
def models_on_a_second_device() -> Iterator[None]:
    with second_device() as device, pytest.MonkeyPatch.context() as patch:
        for name in CHOOSING_A_DEVICE:
            module = importlib.import_module(f"cfbench_recsys.recommenders.{name}")
            patch.setattr(module, "torch_device", lambda _: device)
        yield


@functools.cache
def state_of(name: str) -> Any:
    """The weights of a recommender that was fitted on the CPU."""
    model = (OF_PROFILES | OF_GRAPHS)[name]()
    model.fit(world.split(), world.streams, lambda done, total: None)
    return model.state()


def explained(make: Callable[[], Any], recommender: str, scope: Any) -> list[bytes]:
    graph = world.split().profiles
    training = world.training_part(graph)
    model = (OF_PROFILES | OF_GRAPHS)[recommender]()
    model.load_state(state_of(recommender), graph if recommender in OF_GRAPHS else training)
    context = Context(model, graph, training, functools.partial(world.streams, "explain"))
    everyone = Targets.of(graph, USERS, np.zeros((len(USERS), 1)), world.K, "item", scope)
    scores = (
        model.score_edits(Edits.nothing(USERS))
        if recommender in OF_GRAPHS
        else model.score_profiles(graph[USERS])
    )
    lists = top_k(scores, everyone.history, everyone.padding, world.K)
    targets = Targets.of(graph, np.repeat(USERS, world.K), lists.reshape(-1, 1), world.K, "item", scope)
    explainer, found = make(), [scores.tobytes()]
    with on_device_of(model):
        if hasattr(explainer, "prepare"):
            context = dataclasses.replace(context, state=explainer.prepare(context))
        if hasattr(explainer, "importances"):
            found.append(explainer.importances(targets, context).tobytes())
        else:
            edits = Answer.of(explainer.counterfactuals(targets, context)).edits
            found += [getattr(edits, name).tobytes() for name in ("rows", "edge_users", "edge_items")]
    return found


@pytest.mark.parametrize("recommender", OF_PROFILES)
@pytest.mark.parametrize("method", ON_PROFILES)
def test_profiles_are_explained_as_on_the_cpu(method: str, recommender: str) -> None:
    if method == "accent, influence" and not hasattr(OF_PROFILES[recommender](), "item_embeddings"):
        pytest.skip("influence needs vectors of items")
    expected = explained(ON_PROFILES[method], recommender, "user-vector")
    with models_on_a_second_device():
        assert explained(ON_PROFILES[method], recommender, "user-vector") == expected


@pytest.mark.parametrize("recommender", OF_GRAPHS)
@pytest.mark.parametrize("method", ON_GRAPHS)
def test_graphs_are_explained_as_on_the_cpu(method: str, recommender: str) -> None:
    scope = "user-only" if method.startswith("accent") else "k-hop"
    expected = explained(ON_GRAPHS[method], recommender, scope)
    with models_on_a_second_device():
        assert explained(ON_GRAPHS[method], recommender, scope) == expected


@pytest.mark.parametrize("recommender", OF_PROFILES | OF_GRAPHS)
def test_recommenders_can_be_fitted_on_a_second_device(recommender: str) -> None:
    expected = state_of(recommender)
    state_of.cache_clear()
    with models_on_a_second_device():
        found = state_of(recommender)
    state_of.cache_clear()
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
