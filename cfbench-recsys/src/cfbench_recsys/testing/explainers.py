"""What every explainer must do, on each recommender of the kit, scope and level that it declares."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.lifecycle.models import load_state, save_state
from cfbench_core.specs import Capabilities, lacking, resolve
from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_recsys.edits import ADD, REMOVE, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Answer, Context, Format, Level, Scope, Targets
from cfbench_recsys.testing.models import kit_models
from cfbench_recsys.testing.world import (
    ITEMS,
    NEARLY_ALL,
    ONE_INTERACTION,
    ORDINARY,
    K,
    interactions,
    other_global_seeds,
    streams,
    training_part,
    with_row,
)

KNOWN = {
    "format": frozenset(get_args(Format)),
    "level": frozenset(get_args(Level)),
    "scope": frozenset(get_args(Scope)),
    "edit": frozenset({"remove", "add"}),
    "pretraining": frozenset({"yes"}),
}
BUDGET = 20
"""Edits that an answer may have."""

TOLERANCE = 1e-6
"""By how much a number may change with the batch that it is computed in."""


@dataclass(frozen=True)
class Case:
    """Something to explain. ``name`` says what, for messages."""

    name: str
    targets: Targets
    context: Context

    def take(self, rows: IntArray) -> Case:
        return dataclasses.replace(self, targets=self.targets.take(rows))


@dataclass(frozen=True)
class UnitAnswer:
    """What was answered for one unit: importances of its interactions, and edges with their operation."""

    importances: FloatArray | None
    edges: tuple[tuple[int, int, int], ...] | None


# The checks


def declares_what_it_can(subject: Subject) -> None:
    """Are its capabilities among those of the suite, and has it the methods that they need?"""
    provides, implementation = subject.spec.provides, resolve(subject.spec.target)
    for axis, values in provides.items():
        unknown = ", ".join(sorted(values - KNOWN.get(axis, frozenset())))
        require(not unknown, f"declares {axis} {unknown}, which the suite does not know")
    for axis in ("format", "level", "scope"):
        require(bool(provides.get(axis)), f"declares no {axis}: it would never be used")
    offers = {name for name in ("importances", "counterfactuals", "prepare") if hasattr(implementation, name)}
    if "implicit" in provides["format"]:
        require("importances" in offers, "declares format implicit, but has no method importances")
    if "explicit" in provides["format"]:
        methods = {"importances", "counterfactuals"}
        require(bool(offers & methods), "declares format explicit, but has no method counterfactuals")
    declared = "pretraining" in provides
    require(
        declared == ("prepare" in offers), "a method prepare and pretraining: yes go together, or neither"
    )


def answers_are_well_formed(subject: Subject) -> None:
    """Have importances and edits the shape and type that the suite requires, without NaN or infinity?"""
    for case in cases(subject, ORDINARY):
        _check_form(case, _explained_once(subject, case))


def is_deterministic(subject: Subject) -> None:
    """Are its explanations the same in a second call, and does it use only the random streams that it is given?"""
    for case in cases(subject, ORDINARY):
        with other_global_seeds("another"):
            again = answers(subject, case)
        _require_equal(
            _answered_once(subject, case),
            again,
            0.0,
            f"{case.name}: gives other explanations in a second call",
        )


def is_independent_of_the_batch(subject: Subject) -> None:
    """Is the explanation of a unit the same alone, in another order, and in a batch with others?"""
    for case in cases(subject, ORDINARY):
        together = _answered_once(subject, case)
        units = np.arange(len(together))
        backwards = answers(subject, case.take(units[::-1]))[::-1]
        _require_equal(together, backwards, TOLERANCE, f"{case.name}: the order of the units matters")
        for unit in units[:: max(1, len(units) // 4)]:
            alone = answers(subject, case.take(units[unit : unit + 1]))
            message = f"{case.name}: its explanation alone differs from that in a batch"
            _require_equal(together[unit : unit + 1], alone, TOLERANCE, message)


def explains_a_user_with_one_interaction(subject: Subject) -> None:
    """Does it answer for a user with one interaction?"""
    for case in cases(subject, np.array([ONE_INTERACTION])):
        _check_form(case, _explained(subject, case))


def explains_a_user_with_nearly_everything(subject: Subject) -> None:
    """Does it answer for a user with all items but a few?"""
    for case in cases(subject, np.array([NEARLY_ALL])):
        _check_form(case, _explained(subject, case))


def stays_in_scope(subject: Subject) -> None:
    """Does it name each edge once: existing ones to remove, missing ones to add, none outside its scope?"""
    _require_explicit(subject)
    for case in cases(subject, np.concatenate([ORDINARY, [ONE_INTERACTION, NEARLY_ALL]])):
        allowed = edges_in_scope(case.context.interactions, case.targets)
        in_scope = set(
            zip(allowed.rows.tolist(), allowed.users.tolist(), allowed.items.tolist(), strict=True)
        )
        for unit, answer in enumerate(answers(subject, case)):
            _check_edges(case, unit, answer.edges or (), in_scope, subject)


def stays_within_the_budget(subject: Subject) -> None:
    """Does no answer have more edits than the protocol allows, be it one?"""
    _require_explicit(subject)
    for case in cases(subject, ORDINARY):
        limited = dataclasses.replace(case, targets=dataclasses.replace(case.targets, max_edits=1))
        sizes = [len(answer.edges or ()) for answer in answers(subject, limited)]
        message = f"{case.name}: answers with {max(sizes, default=0)} edits where 'targets.max_edits' is 1"
        require(max(sizes, default=0) <= 1, message)


def says_none_when_nothing_helps(subject: Subject) -> None:
    """Does it answer without edges, rather than fail, for an item that stays whatever is removed?"""
    for case in cases(subject, ORDINARY, unmovable=True):
        explained = _explained(subject, case)
        _check_form(case, explained)
        if case.targets.level == "item":
            named = [len(answer.edges or ()) for answer in _by_unit(case, explained)]
            message = f"{case.name}: names {max(named)} edges for an item that they do not move"
            require(max(named) == 0, message)


def leaves_its_input_alone(subject: Subject) -> None:
    """Are targets and interactions the same after it answered?"""
    for case in cases(subject, ORDINARY):
        _explained_once(subject, case)
        changed = subject.memory[f"changed: {case.name}"]
        require(not changed, f"{case.name}: changes {', '.join(changed)}")


def learns_from_training_users_only(subject: Subject) -> None:
    """Is its answer about a profile the same when the profile of another explained user changes?"""
    found = [case for case in cases(subject, ORDINARY) if case.targets.scope == "user-vector"]
    if not found:
        raise NotApplicable("on a graph the other users are part of what is explained")
    for case in found:
        changed = with_row(case.context.interactions, NEARLY_ALL, np.array([2]))
        elsewhere = dataclasses.replace(case, context=dataclasses.replace(case.context, interactions=changed))
        message = f"{case.name}: uses the interactions of other users who are explained"
        _require_equal(answers(subject, case), answers(subject, elsewhere), 0.0, message)


def prepares_named_arrays(subject: Subject) -> None:
    """Is what it learned beforehand a dictionary of arrays, which can be stored and read back?"""
    if "pretraining" not in subject.spec.provides:
        raise NotApplicable("it is not trained beforehand")
    for case in cases(subject, ORDINARY)[:1]:
        state = subject.create().prepare(case.context)
        arrays = isinstance(state, dict) and all(isinstance(array, np.ndarray) for array in state.values())
        require(arrays, f"prepare must return a dictionary of NumPy arrays, returns {type(state).__name__}")
        with tempfile.TemporaryDirectory() as folder:
            save_state(state, Path(folder))
            stored = load_state(Path(folder))
        same = state.keys() == stored.keys() and all(np.array_equal(state[n], stored[n]) for n in state)
        require(same, "what prepare returns changes when it is stored")


EXPLAINER_CHECKS = checks_of(
    declares_what_it_can,
    answers_are_well_formed,
    is_deterministic,
    is_independent_of_the_batch,
    explains_a_user_with_one_interaction,
    explains_a_user_with_nearly_everything,
    stays_in_scope,
    stays_within_the_budget,
    says_none_when_nothing_helps,
    leaves_its_input_alone,
    learns_from_training_users_only,
    prepares_named_arrays,
)


# The cases


def cases(subject: Subject, users: IntArray, unmovable: bool = False) -> list[Case]:
    """Lists of the kit's recommenders, in every scope and level that the explainer declares.

    With ``unmovable``, of recommenders that recommend one item to every user; at item level only that is
    explained.

    Raises:
        NotApplicable: when no recommender of the kit offers what the explainer needs.
    """
    graph = interactions()
    needs = needs_of(subject)
    training = training_part(graph)
    found = []
    for model in kit_models(graph):
        if lacking(needs, model.provides):
            continue
        loved = _least_taken(graph, users) if unmovable else None
        recommender = model.recommender if loved is None else model.recommender.favouring(loved)
        context = Context(recommender, graph, training, streams)
        for scope in sorted(model.provides["scope"] & subject.spec.provides.get("scope", frozenset())):
            for level in sorted(subject.spec.provides.get("level", frozenset())):
                targets = listed_targets(recommender, graph, users, level, scope, loved)
                name = f"{model.name}, scope {scope}, {level} level"
                found.append(Case(name, targets, context))
    if not found:
        raise NotApplicable(f"the kit has no recommender with {lacking(needs, {}) or 'that scope'}")
    if "add" in subject.spec.provides.get("edit", frozenset()):
        found = [
            dataclasses.replace(case, targets=dataclasses.replace(case.targets, additions=True))
            for case in found
        ]
    return [_prepared(subject, case) for case in found]


def needs_of(subject: Subject) -> Capabilities:
    """What it needs of a recommender: by its spec, and with its options."""
    needs = dict(subject.spec.needs.get("recommender", {}))
    of_options: Mapping[str, Capabilities] = getattr(subject.options, "needs", {})
    for axis, values in of_options.get("recommender", {}).items():
        needs[axis] = needs.get(axis, frozenset()) | values
    return needs


def _least_taken(graph: scipy.sparse.csr_matrix, users: IntArray) -> int:
    """An item that none, or the fewest, of the users have."""
    return int(np.asarray(graph[users].sum(axis=0)).argmin())


def listed_targets(
    recommender: Any,
    graph: scipy.sparse.csr_matrix,
    users: IntArray,
    level: Any,
    scope: Any,
    only: int | None,
) -> Targets:
    all_users = Targets.of(graph, users, np.zeros((len(users), 1), dtype=np.int64), K, level, scope)
    lists = np.empty((len(users), K), dtype=np.int64)
    for block, scores in score_blocks(recommender, Edits.nothing(users), graph):
        lists[block] = top_k(scores, all_users.history[block], all_users.padding[block], K)
    if level == "list":
        return Targets.of(graph, users, lists, K, level, scope, max_edits=BUDGET)
    rows, places = np.nonzero(lists == only if only is not None else lists >= 0)
    items = lists[rows, places][:, None]
    return Targets.of(graph, users[rows], items, K, level, scope, max_edits=BUDGET)


def _prepared(subject: Subject, case: Case) -> Case:
    """The case with what a pre-trained explainer learned, by another instance than will answer."""
    if "pretraining" not in subject.spec.provides:
        return case
    key = f"state: {case.name}"
    if key not in subject.memory:
        subject.memory[key] = subject.create().prepare(case.context)
    return dataclasses.replace(case, context=dataclasses.replace(case.context, state=subject.memory[key]))


def _explained(subject: Subject, case: Case) -> tuple[Any, Any]:
    """Importances and edits, None for a format that is not declared or has no method of its own."""
    explainer, formats = subject.create(), subject.spec.provides.get("format", frozenset())
    importances = edits = None
    if hasattr(explainer, "importances"):  # explicit answers may be derived from them
        importances = explainer.importances(case.targets, case.context)
    if "explicit" in formats and hasattr(explainer, "counterfactuals"):
        edits = Answer.of(explainer.counterfactuals(case.targets, case.context)).edits
    return importances, edits


def _explained_once(subject: Subject, case: Case) -> tuple[Any, Any]:
    """What it answers about the case of ordinary users, for all checks that need it; and whether it changes its input."""
    key = f"explained: {case.name}"
    if key not in subject.memory:
        copies = {name: array.copy() for name, array in _input_arrays(case).items()}
        with other_global_seeds("one"):
            explained = _explained(subject, case)
        arrays = _input_arrays(case).items()
        changed = [name for name, array in arrays if not np.array_equal(copies[name], array)]
        subject.memory.update({key: explained, f"changed: {case.name}": changed})
    found: tuple[Any, Any] = subject.memory[key]
    return found


def _answered_once(subject: Subject, case: Case) -> list[UnitAnswer]:
    return _by_unit(case, _explained_once(subject, case))


def answers(subject: Subject, case: Case) -> list[UnitAnswer]:
    """What a fresh instance answers, unit by unit, without the padding."""
    return _by_unit(case, _explained(subject, case))


def _by_unit(case: Case, explained: tuple[Any, Any]) -> list[UnitAnswer]:
    return [_unit_answer(case.targets, unit, *explained) for unit in range(len(case.targets))]


def _unit_answer(targets: Targets, unit: int, importances: Any, edits: Any) -> UnitAnswer:
    own = None if importances is None else importances[unit][~targets.padding[unit]]
    if edits is None:
        return UnitAnswer(own, None)
    rows = edits.rows == unit
    edges = zip(edits.edge_users[rows], edits.edge_items[rows], edits.ops[rows], strict=True)
    return UnitAnswer(own, tuple(sorted((int(user), int(item), int(op)) for user, item, op in edges)))


# What is required


def _check_form(case: Case, explained: tuple[Any, Any]) -> None:
    importances, edits = explained
    if importances is not None:
        shape = case.targets.history.shape
        require(isinstance(importances, np.ndarray), f"{case.name}: importances are no NumPy array")
        require(importances.shape == shape, f"{case.name}: importances are {importances.shape}, not {shape}")
        require(
            importances.dtype == np.float64, f"{case.name}: importances are {importances.dtype}, not float64"
        )
        finite = np.isfinite(importances[~case.targets.padding]).all()
        require(bool(finite), f"{case.name}: an importance is NaN or infinite")
    if edits is not None:
        _check_edits_form(case, edits)


def _check_edits_form(case: Case, edits: Any) -> None:
    require(
        isinstance(edits, Edits), f"{case.name}: counterfactuals returns {type(edits).__name__}, not Edits"
    )
    units = len(case.targets)
    require(len(edits) == units, f"{case.name}: {len(edits)} edits for {units} units")
    require(np.array_equal(edits.users, case.targets.users), f"{case.name}: edits are for other users")
    lengths = {len(array) for array in (edits.rows, edits.edge_users, edits.edge_items, edits.ops)}
    require(len(lengths) == 1, f"{case.name}: rows, edge_users, edge_items and ops differ in length")
    ordered = bool((np.diff(edits.rows) >= 0).all() and ((edits.rows >= 0) & (edits.rows < units)).all())
    require(ordered, f"{case.name}: rows must ascend, from 0 to {units - 1}")


def _check_edges(
    case: Case,
    unit: int,
    edges: Sequence[tuple[int, int, int]],
    in_scope: set[tuple[int, int, int]],
    subject: Subject,
) -> None:
    graph, user = case.context.interactions, int(case.targets.users[unit])
    may_add = "add" in subject.spec.provides.get("edit", frozenset())
    own_only = case.targets.scope in ("user-vector", "user-only")
    require(len({edge[:2] for edge in edges}) == len(edges), f"{case.name}: names an edge twice")
    for edge_user, item, op in edges:
        edge = f"user {edge_user}, item {item}"
        in_graph = 0 <= edge_user < graph.shape[0] and 0 <= item < ITEMS
        require(in_graph, f"{case.name}: names an edge that does not exist: {edge}")
        exists = bool(graph[edge_user, item])
        require(op in (REMOVE, ADD), f"{case.name}: {op} is neither REMOVE nor ADD")
        require(op == ADD or exists, f"{case.name}: removes an edge that does not exist: {edge}")
        require(op == REMOVE or not exists, f"{case.name}: adds an edge that exists: {edge}")
        require(op == REMOVE or may_add, f"{case.name}: adds an edge, but does not declare edit add")
        outside = f"{case.name}: names an edge outside its scope: {edge}"
        require(edge_user == user or not own_only, outside)
        require(op == ADD or (unit, edge_user, item) in in_scope, outside)


def _require_equal(
    first: Sequence[UnitAnswer], second: Sequence[UnitAnswer], tolerance: float, message: str
) -> None:
    for one, other in zip(first, second, strict=True):
        require(one.edges == other.edges, f"{message} ({one.edges} and {other.edges})")
        if one.importances is not None and other.importances is not None:
            require(one.importances.shape == other.importances.shape, message)
            scale = max(1.0, float(np.abs(one.importances).max(initial=0.0)))
            gap = float(np.abs(one.importances - other.importances).max(initial=0.0))
            require(gap <= tolerance * scale, f"{message} (by {gap:.2g})")


def _require_explicit(subject: Subject) -> None:
    if not hasattr(resolve(subject.spec.target), "counterfactuals"):
        raise NotApplicable("its explicit answers, if any, are derived by the suite")


def _input_arrays(case: Case) -> dict[str, Any]:
    """Everything an explainer is given, by name."""
    targets, context = case.targets, case.context
    arrays = {name: getattr(targets, name) for name in ("users", "items", "history", "padding")}
    for name, matrix in (("interactions", context.interactions), ("training", context.training)):
        arrays |= {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    return arrays
