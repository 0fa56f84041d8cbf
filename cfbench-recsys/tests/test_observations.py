"""Observations are shared, complete, and do not depend on the batch; metrics declare what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from cfbench_core.component_specs import component_specs
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_recsys.contracts import Metric
from cfbench_recsys.edits import Edits
from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.neg_p import NegP
from cfbench_recsys.metrics.pos_p import Config, PosP
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.scoring import BLOCK

METRICS = component_specs("cfbench_recsys", "metric")


def created(spec: ComponentSpec) -> Metric:
    return resolve(spec.target)(resolve(spec.config)() if spec.config else None)


def fitting(format: str, level: str) -> list[Metric]:
    return [
        created(spec)
        for spec in METRICS
        if spec.provides["format"] == {format} and level in spec.provides["level"]
    ]


@pytest.mark.parametrize("spec", METRICS, ids=lambda spec: spec.name)
def test_every_metric_documents_its_columns(spec: ComponentSpec) -> None:
    """Direction, range, unit, needs, and what becomes of an empty answer or a short history."""
    assert spec.details["unit"] == "explanation" and spec.details["empty"]
    assert spec.needs["explainer"]["format"] == spec.provides["format"]
    for level in spec.provides["level"]:
        columns = created(spec).columns({"k": 5, "level": level})
        assert columns and len({column.name for column in columns}) == len(columns)
        for column in columns:
            assert column.question.endswith((".", "?")) and column.direction in ("higher", "lower", "")
            assert column.range is None or column.range[0] < column.range[1]


@pytest.mark.parametrize("level", ["item", "list"])
def test_every_metric_fills_the_columns_it_declares_within_their_range(awkward, level: str) -> None:
    case = awkward(level)
    rng = np.random.default_rng(1)
    importances = [{item: rng.normal() for item in case.histories[user]} for user, _ in case.units()]
    edits = [{item: -1 for item in case.histories[user] if rng.random() < 0.4} for user, _ in case.units()]
    for format, seen in (("implicit", case.implicit(importances)), ("explicit", case.explicit(edits))):
        metrics = fitting(format, level)
        columns = [column for metric in metrics for column in metric.columns({"k": case.k, "level": level})]
        results = compute_metrics(metrics, seen)
        assert list(results) == [column.name for column in columns]
        for column in columns:
            values = results[column.name][~np.isnan(results[column.name])]
            assert column.question
            assert column.range is None or ((values >= column.range[0]) & (values <= column.range[1])).all()


@pytest.mark.parametrize("declared", ["sigmoid", "softmax", "identity"])
@pytest.mark.parametrize("level", ["item", "list"])
def test_a_unit_scores_the_same_alone_and_in_company_to_the_last_bit(level: str, declared: str) -> None:
    """Real-valued weights, so that a sum in another order would show; more units than a block holds."""
    rng = np.random.default_rng(2)
    weights, bias = rng.normal(size=(40, 40)), rng.normal(size=40)
    from scipy import sparse

    from cfbench_recsys.targets import Targets

    class Model:
        link = declared

        def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
            return profiles @ weights + bias

    dense = rng.random((30, 40)) < rng.uniform(0.05, 0.6, (30, 1))
    dense[:, 0] = True
    interactions = sparse.csr_matrix(dense.astype(float))
    users = np.repeat(np.arange(30), 3 if level == "item" else 1)
    scores = np.where(dense, -np.inf, dense @ weights + bias)
    lists = np.argsort(-scores, axis=1)[:, :3]
    items = lists.reshape(-1, 1) if level == "item" else lists
    targets = Targets.of(interactions, users, items, 3, level, "user-vector")
    importances = rng.normal(size=targets.history.shape)
    removed = (rng.random(targets.history.shape) < 0.5) & ~targets.padding

    def results(rows: np.ndarray) -> dict[str, np.ndarray]:
        some = targets.take(rows)
        width = some.history.shape[1]
        implicit = ImplicitObservations(Model(), some, importances[rows, :width], interactions)
        edits = Edits.removals(some.users, some.history, removed[rows, :width])
        explicit = ExplicitObservations(Model(), some, edits, interactions)
        return {
            **compute_metrics(fitting("implicit", level), implicit),
            **compute_metrics(fitting("explicit", level), explicit),
        }

    together = results(np.arange(len(targets)))
    if level == "item":
        assert len(targets) > BLOCK
    for b in range(0, len(targets), 7):
        for name, values in results(np.array([b])).items():
            np.testing.assert_array_equal(values[0], together[name][b], err_msg=name)


def test_metrics_of_the_same_profiles_share_their_forward_passes(awkward) -> None:
    case = awkward("list")
    scored = 0

    class Counting:
        def score_profiles(self, profiles):
            nonlocal scored
            scored += profiles.shape[0]
            return case.model().score_profiles(profiles)

    importances = [dict.fromkeys(case.histories[user], 1.0) for user, _ in case.units()]
    seen = ImplicitObservations(
        Counting(), case.targets(), case.importance_array(importances), case.interactions()
    )
    compute_metrics([PosP(Config())], seen)
    once = scored
    assert once == BLOCK  # 5 units of at most 10 different steps
    compute_metrics([PosP(Config())], seen)
    assert scored == once
    compute_metrics([NegP(Config())], seen)
    assert scored == 2 * once


def test_importances_of_the_wrong_shape_or_not_finite_are_refused(awkward) -> None:
    case = awkward("list")
    importances = [dict.fromkeys(case.histories[user], 1.0) for user, _ in case.units()]
    good = case.importance_array(importances)
    with pytest.raises(ValueError, match="histories"):
        ImplicitObservations(case.model(), case.targets(), good[:, :-1], case.interactions())
    good[0, 0] = np.nan
    with pytest.raises(ValueError, match="not a finite number"):
        ImplicitObservations(case.model(), case.targets(), good, case.interactions())


def test_a_model_that_answers_not_a_number_is_refused(awkward) -> None:
    case = awkward("item")

    class Broken:
        def score_profiles(self, profiles):
            return np.full(profiles.shape, np.nan)

    edits = case.edits([{} for _ in case.units()])
    seen = ExplicitObservations(Broken(), case.targets(), edits, case.interactions())
    with pytest.raises(ValueError, match="not a number"):
        seen.ranks_after  # noqa: B018


def test_metric_files_import_neither_torch_nor_pandas_nor_scipy() -> None:
    import subprocess
    import sys

    modules = [reference for spec in METRICS for reference in (spec.target, spec.config) if reference]
    program = (
        "import sys; from cfbench_core.specs import resolve\n"
        f"for reference in {modules!r}: resolve(reference)\n"
        "print([name for name in ('torch', 'pandas', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
