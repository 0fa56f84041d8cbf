"""What every recommender must do, fitted on the planted data with the options that it is checked with."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.lifecycle.models import load_state, save_state
from cfbench_core.specs import resolve
from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_recsys.edits import ADD, REMOVE, Edits, FloatArray
from cfbench_recsys.links import DEFAULT_LINK, LINKS
from cfbench_recsys.quality import padded_rows
from cfbench_recsys.ranking import ranks_of, top_k
from cfbench_recsys.scoring import score_blocks, score_once
from cfbench_recsys.targets import Targets
from cfbench_recsys.testing.world import TWIN, K, other_global_seeds, split, streams

NOISE = 1e-10
"""Far below the grid on which ranks are decided."""

CHANGED_LISTS = 0.1
"""Share of the lists that a recommender's attention must change, to be more than a name."""


def declares_what_it_can(subject: Subject) -> None:
    """Has it the methods that its capabilities promise?"""
    implementation, access = resolve(subject.spec.target), subject.spec.provides.get("access", frozenset())
    profile, graph = hasattr(implementation, "score_profiles"), hasattr(implementation, "score_edits")
    require(profile or graph, "has neither score_profiles nor score_edits")
    scopes = subject.spec.provides.get("scope", frozenset())
    wanted = "user-only" if graph else "user-vector"
    require(wanted in scopes, f"declares no scope {wanted}: it would never be explained")
    promised = {
        "weights": "weights",
        "gradients": "score_weighted" if graph else "score_dense",
        "attention": "with_uniform_attention",
        "module": "explained_module",
    }
    for name, method in promised.items():
        require(name not in access or hasattr(implementation, method), f"declares {name}, has no {method}")


def declares_its_link(subject: Subject) -> None:
    """Is the link that it declares for its scores one of sigmoid, softmax and identity?"""
    link = getattr(_fitted(subject), "link", DEFAULT_LINK)
    require(link in LINKS, f"declares the link {link!r}, which is none of {', '.join(LINKS)}")


def gives_scores_of_all_items(subject: Subject) -> None:
    """Are scores finite float64, for all items, for empty profiles too?"""
    model, graph = _fitted(subject), split().profiles
    edits = Edits.concatenate([Edits.nothing(np.arange(graph.shape[0])), _emptied(graph, TWIN)])
    scores = score_once(model, edits, graph)
    shape = (len(edits), graph.shape[1])
    require(isinstance(scores, np.ndarray), f"scores are {type(scores).__name__}, not a NumPy array")
    require(scores.shape == shape, f"scores are {scores.shape}, not {shape}")
    require(scores.dtype == np.float64, f"scores are {scores.dtype}, not float64")
    require(
        bool(np.isfinite(scores).all()),
        "a score is NaN or infinite (leave seen items in: the suite masks them)",
    )


def is_independent_of_the_batch(subject: Subject) -> None:
    """Are the scores of a user the same alone, in another order, and in a batch with others?"""
    model, graph = _fitted(subject), split().profiles
    users = np.arange(graph.shape[0])
    together = _scores(model, Edits.nothing(users), graph)
    backwards = _scores(model, Edits.nothing(users[::-1]), graph)[::-1]
    _require_close(together, backwards, "scores depend on the order of the users")
    for user in users[::15]:
        alone = score_once(model, Edits.nothing(users[user : user + 1]), graph)
        _require_close(
            together[user : user + 1], alone, "the scores of a user alone differ from those in a batch"
        )


def fits_the_same_under_a_seed(subject: Subject) -> None:
    """Does fitting again give the same numbers, using no random stream but those it is given?"""
    first, second = _fitted(subject).state(), _fit(subject, "another").state()
    require(first.keys() == second.keys(), "fitting again learns other arrays")
    for name in first:
        require(np.array_equal(first[name], second[name]), f"fitting again gives another {name}")


def restores_its_state(subject: Subject) -> None:
    """Does it score the same after its state was stored and read back by another instance?"""
    model, graph = _fitted(subject), split().profiles
    users = Edits.nothing(np.arange(graph.shape[0]))
    before = _scores(model, users, graph)
    _require_close(before, _scores(_reloaded(subject, graph), users, graph), "scores change with storing")


def scores_deterministically(subject: Subject) -> None:
    """Are scores the same in a second call, without an uncontrolled random stream?"""
    model, graph = _fitted(subject), split().profiles
    users = Edits.nothing(np.arange(graph.shape[0]))
    loaded = _reloaded(subject, graph)
    for which, other in (("the fitted model", model), ("a loaded model", loaded)):
        with other_global_seeds("one"):
            once = _scores(other, users, graph)
        with other_global_seeds("another"):
            again = _scores(other, users, graph)
        require(np.array_equal(once, again), f"{which} gives other scores in a second call")


def learns_the_planted_tastes(subject: Subject) -> None:
    """Does it find held-out interactions, clearly more often than by chance?"""
    if subject.spec.role == "baseline":
        raise NotApplicable("it is a baseline, which need not learn preferences")
    model, kept_back = _fitted(subject), split()
    test, profiles = kept_back.test, kept_back.profiles
    items = np.asarray(test.targets.argmax(axis=1)).reshape(-1, 1)
    seen = Targets.of(profiles, test.users, items, K, "item", "user-vector")
    ranks = ranks_of(_scores(model, Edits.nothing(test.users), profiles), items, seen.history, seen.padding)
    hits = float((ranks <= K).mean())
    chance = K / (profiles.shape[1] - np.diff(profiles.indptr)[test.users])
    bar = float(chance.mean() + 3 * np.sqrt((chance * (1 - chance)).sum()) / len(chance))
    require(
        hits > bar,
        f"finds {hits:.2f} of the held-out interactions among the first {K}; chance reaches {bar:.2f}",
    )


def follows_edits(subject: Subject) -> None:
    """Are scores under an edit those of the data with the edit made?"""
    model, graph = _fitted(subject), split().profiles
    for edits in _sample_edits(graph, on_graph=hasattr(model, "score_edits")):
        edited = graph.tolil()
        for user, item, op in zip(edits.edge_users, edits.edge_items, edits.ops, strict=True):
            edited[user, item] = 1.0 if op == ADD else 0.0
        rebuilt = edited.tocsr()
        after = score_once(_reloaded(subject, rebuilt), Edits.nothing(edits.users), rebuilt)
        _require_close(
            score_once(model, edits, graph), after, "scores under an edit differ from the edited data's"
        )


def is_as_linear_as_it_says(subject: Subject) -> None:
    """Is its score a sum of its weights over any profile, if it declares access weights?"""
    if "weights" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not declare access weights")
    model = _fitted(subject)
    profiles = _varied_profiles()
    items = np.arange(profiles.shape[1])
    nothing = model.score_profiles(scipy.sparse.csr_matrix((1, len(items))))
    weights = model.weights(items[:, None], items[None, :])
    scores = model.score_profiles(profiles)
    _require_close(scores, profiles @ weights + nothing, "the score is not the sum of weights", 1e-8)
    rows, columns = np.stack([items[::2], items[1::2]])[:, :, None], np.array([[[0, 3, 3]], [[1, 0, 5]]])
    some = model.weights(rows, columns)
    require(
        some.shape == (2, len(items) // 2, 3), f"weights of {rows.shape} and {columns.shape}: {some.shape}"
    )
    _require_close(some, weights[rows, columns], "weights do not broadcast like an index")


def has_true_gradients(subject: Subject) -> None:
    """Do its gradients agree with small changes of edges or profiles, if it declares access gradients?"""
    if "gradients" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not declare access gradients")
    import torch

    model, graph = _fitted(subject), split().profiles
    on_graph = hasattr(model, "score_edits")
    if on_graph:
        edits = Edits.concatenate(_sample_edits(graph, on_graph))
        arrays = [torch.as_tensor(a) for a in (edits.users, edits.rows, edits.edge_users, edits.edge_items)]
        score, whole = functools.partial(model.score_weighted, *arrays), edits.ops.astype(np.float64)
        exact = model.score_edits(edits)
    else:
        profiles = _varied_profiles()
        score, whole, exact = model.score_dense, profiles.toarray(), model.score_profiles(profiles)
    ends = torch.from_numpy(whole).requires_grad_()
    scored = score(ends)
    require(
        scored.dtype == torch.float64, f"differentiable scores are {scored.dtype}, not float64 torch tensors"
    )
    found = scored.detach().cpu().numpy()
    _require_close(found, exact, "scores with and without gradients disagree", 1e-8)
    (gradient,) = torch.autograd.grad(scored.sum(), ends)
    require(bool(torch.isfinite(gradient).all()), "a gradient is NaN or infinite (for an empty profile?)")
    between = 0.25 + 0.5 * whole
    _require_true_slopes(score, torch.from_numpy(between if on_graph else between[:: len(between) // 3]))


def _require_true_slopes(score: Callable[[Any], Any], at: Any) -> None:
    """Is the gradient of a mix of ``score(at)`` (B, items) that of central differences, entry by entry?"""
    import torch

    mix = torch.linspace(-1.0, 1.0, split().profiles.shape[1], dtype=torch.float64)
    at.requires_grad_()
    (gradient,) = torch.autograd.grad((score(at).cpu() @ mix).sum(), at)
    step = 1e-6  # small, so that hardly a kink (of a ReLU) lies within it
    for place in np.ndindex(*at.shape):
        change = torch.zeros_like(at)
        change[place] = step
        with torch.no_grad():
            up = (score(at + change).cpu() @ mix).sum()
            down = (score(at - change).cpu() @ mix).sum()
        slope, ours = float(up - down) / (2 * step), float(gradient[place])
        require(
            abs(slope - ours) <= 1e-4 * max(1.0, abs(slope)),
            f"the gradient of an edge is {ours:.6g}, but a small change gives {slope:.6g}",
        )


def depends_on_its_attention(subject: Subject) -> None:
    """Do lists change when its attention is replaced by uniform weights, if it declares access attention?"""
    if "attention" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not declare access attention")
    model, graph = _fitted(subject), split().profiles
    users = Edits.nothing(np.arange(graph.shape[0]))
    seen, padding = padded_rows(graph, users.users)
    with_attention, without = (
        top_k(_scores(each, users, graph), seen, padding, K)
        for each in (model, model.with_uniform_attention())
    )
    changed = float((with_attention != without).any(axis=1).mean())
    require(
        changed >= CHANGED_LISTS,
        f"with uniform weights in place of its attention {changed:.0%} of the lists of {K} change; "
        f"at least {CHANGED_LISTS:.0%} must",
    )


def leaves_its_input_alone(subject: Subject) -> None:
    """Are profiles and edits the same after it scored them?"""
    model, graph = _fitted(subject), split().profiles
    given = Edits.concatenate(_sample_edits(graph, on_graph=hasattr(model, "score_edits")))
    profiles = given.profiles(graph)
    arrays = [profiles.data, profiles.indices, profiles.indptr, *vars(given).values()]
    before = [array.copy() for array in arrays]
    if hasattr(model, "score_edits"):
        model.score_edits(given)
    else:
        model.score_profiles(profiles)
    same = all(np.array_equal(array, copy) for array, copy in zip(arrays, before, strict=True))
    require(same, "scoring changes the profiles or edits that it is given")


RECOMMENDER_CHECKS = checks_of(
    declares_what_it_can,
    declares_its_link,
    gives_scores_of_all_items,
    is_independent_of_the_batch,
    fits_the_same_under_a_seed,
    restores_its_state,
    scores_deterministically,
    learns_the_planted_tastes,
    follows_edits,
    is_as_linear_as_it_says,
    has_true_gradients,
    depends_on_its_attention,
    leaves_its_input_alone,
)


def _fitted(subject: Subject) -> Any:
    """The model, fitted once for all checks."""
    if "fitted" not in subject.memory:
        subject.memory["fitted"] = _fit(subject, "one")
    return subject.memory["fitted"]


def _fit(subject: Subject, global_seeds: str) -> Any:
    model = subject.create()
    with other_global_seeds(global_seeds):
        model.fit(split(), streams, lambda done, total: None)
    return model


def _reloaded(subject: Subject, graph: scipy.sparse.csr_matrix) -> Any:
    """Another instance, with the state of the fitted one, on any graph of the same shape."""
    with tempfile.TemporaryDirectory() as folder:
        save_state(dict(_fitted(subject).state()), Path(folder))
        model = subject.create()
        model.load_state(load_state(Path(folder)), graph)
    return model


def _scores(model: Any, edits: Edits, graph: scipy.sparse.csr_matrix) -> FloatArray:
    return np.concatenate([scores for _, scores in score_blocks(model, edits, graph)])


def _varied_profiles() -> scipy.sparse.csr_matrix:
    """(B, items) those of some users, each item alone, random halves of the items and their rest, and none."""
    graph = split().profiles
    items = graph.shape[1]
    halves = streams("halves").random((4, items)) < 0.5
    parts = [
        graph[:8],
        scipy.sparse.identity(items),
        halves,
        ~halves,
        np.ones((1, items)),
        np.zeros((1, items)),
    ]
    return scipy.sparse.vstack(
        [scipy.sparse.csr_matrix(part, dtype=np.float64) for part in parts], format="csr"
    )


def _emptied(graph: scipy.sparse.csr_matrix, user: int) -> Edits:
    """A user without any interaction."""
    items = graph[user].indices.astype(np.int64)
    owner = np.full(len(items), user)
    return Edits(
        np.array([user]), np.zeros_like(items), owner, items, np.full(len(items), REMOVE, dtype=np.int8)
    )


def _sample_edits(graph: scipy.sparse.csr_matrix, on_graph: bool) -> list[Edits]:
    """Single edits: the user's own edges removed and added, all removed; on a graph, edges of others too."""
    user, other = 4, 7
    own, missing = graph[user].indices[:2], np.setdiff1d(np.arange(graph.shape[1]), graph[user].indices)[:1]
    changes = [
        [(user, int(own[0]), REMOVE)],
        [(user, int(own[0]), REMOVE), (user, int(own[1]), REMOVE), (user, int(missing[0]), ADD)],
    ]
    if on_graph:
        changes.append([(user, int(own[0]), REMOVE), (other, int(graph[other].indices[0]), REMOVE)])
    made = []
    for change in changes:
        users, items, ops = (np.array(part) for part in zip(*change, strict=True))
        made.append(Edits(np.array([user]), np.zeros_like(users), users, items, ops.astype(np.int8)))
    return [*made, _emptied(graph, user)]


def _require_close(first: FloatArray, second: FloatArray, message: str, tolerance: float = NOISE) -> None:
    with np.errstate(invalid="ignore"):  # infinities give NaN, which is not within any tolerance
        gap = float((np.abs(first - second) / np.maximum(1.0, np.abs(first))).max(initial=0.0))
    require(gap <= tolerance, f"{message} (by {gap:.2g})")
