from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_run import write_run

from cfbench_core.comparison import Change, compare, independent_interval
from cfbench_core.run_directory import Run
from cfbench_core.statistics import bootstrap_interval

SHAP = "toy-shop/mf/shap/item/5"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write_run(tmp_path_factory.mktemp("runs") / "first"))


@pytest.fixture
def other(first: Run, tmp_path: Path) -> Callable[..., Run]:
    """The first run again, with its scores and its plan changed."""

    def make(
        scores: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
        plan: Callable[[dict], object] = lambda plan: None,  # type: ignore[type-arg]
    ) -> Run:
        directory = shutil.copytree(first.directory, tmp_path / "second")
        scores(pd.read_parquet(directory / "scores.parquet")).to_parquet(directory / "scores.parquet")
        document = json.loads((directory / "plan.json").read_text())
        plan(document)
        (directory / "plan.json").write_text(json.dumps(document))
        return Run(directory)

    return make


def test_a_run_and_its_copy_are_identical(first: Run, other: Callable[..., Run]) -> None:
    found = compare(first, other())
    assert {d.verdict for d in found.differences} == {"identical"}
    assert found.config == found.environment == found.only_first == found.only_second == ()
    assert "All 60 scores that both runs have are identical, unit by unit." in found.render()


def test_the_difference_is_that_of_the_units_in_common(first: Run, other: Callable[..., Run]) -> None:
    users = [f"u{n}" for n in range(30, 60)]

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        mine = frame["cell"] == SHAP
        noise = np.random.default_rng(0).normal(0.01, 0.02, len(frame))
        return frame.assign(value=frame["value"] + mine * noise)[~mine | frame["user"].isin(users)]

    second = other(scores=change)
    found = {(d.cell, d.metric): d for d in compare(first, second).differences}
    before, after = (
        run.scores[(run.scores["cell"] == SHAP) & (run.scores["metric"] == "NEG-P@5")].set_index("unit")
        for run in (first, second)
    )
    common = after.index
    expected = after["value"] - before.loc[common, "value"]
    difference = found[SHAP, "NEG-P@5"]
    assert difference.n == 150
    assert difference.difference == pytest.approx(expected.mean())
    assert difference.first == pytest.approx(before.loc[common, "value"].mean())
    bounds = bootstrap_interval(expected.to_numpy(), clusters=after["user"].to_numpy())
    assert [difference.ci_low, difference.ci_high] == pytest.approx([float(b) for b in bounds])


@pytest.mark.parametrize(
    ("metric", "shift", "verdict"),
    [
        ("POS-P@5", 0.02, "worse"),
        ("POS-P@5", -0.02, "better"),
        ("NEG-P@5", 0.02, "better"),
        ("NEG-P@5", -0.02, "worse"),
        ("gini", 0.02, "different"),
    ],
)
def test_verdicts_follow_the_direction_of_the_metric(
    first: Run, other: Callable[..., Run], metric: str, shift: float, verdict: str
) -> None:
    second = other(
        scores=lambda frame: frame.assign(value=frame["value"] + shift * (frame["metric"] == metric))
    )
    found = compare(first, second)
    verdicts = {d.metric: d.verdict for d in found.differences if d.cell == SHAP}
    assert verdicts.pop(metric) == verdict
    assert set(verdicts.values()) == {"identical"}
    assert {d.metric for d in found.changed} == {metric}


def test_noise_around_nothing_is_no_significant_difference(first: Run, other: Callable[..., Run]) -> None:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        sign = np.where(np.arange(len(frame)) % 2, 0.01, -0.01)
        return frame.assign(value=frame["value"] + sign)

    assert {d.verdict for d in compare(first, other(scores=change)).differences if d.metric != "time"} == {
        "no significant difference"
    }


def test_runs_over_other_units_are_compared_by_their_means(first: Run, other: Callable[..., Run]) -> None:
    second = other(scores=lambda frame: frame.assign(unit="x" + frame["unit"]))
    found = [d for d in compare(first, second).differences if d.metric != "time"]
    assert found and not any(d.paired for d in found)
    summary = first.summary.set_index(["cell", "metric"])
    for d in found:
        own = summary.loc[(d.cell, d.metric)]
        assert d.first == pytest.approx(own["mean"]) and d.second == pytest.approx(own["mean"])
        assert d.ci_low < 0 < d.ci_high and d.verdict == "no significant difference"
        half = np.hypot(own["mean"] - own["ci_low"], own["ci_high"] - own["mean"])
        assert [-d.ci_low, d.ci_high] == pytest.approx([half, half], rel=1e-3)
    text = compare(first, second).render("markdown")
    assert "60 no significant difference. 60 are compared by means" in text


def with_batches(run: Run, sizes: Sequence[int], seconds: Sequence[float], folder: Path) -> Run:
    """A copy of which the cell SHAP was explained in batches, whose units share their time evenly."""
    directory = shutil.copytree(run.directory, folder)
    costs = pd.read_parquet(directory / "costs.parquet")
    costs = costs[costs["cell"] == SHAP].sort_values("unit").iloc[: sum(sizes)]
    costs.assign(elapsed_seconds=np.repeat(seconds, sizes)).to_parquet(directory / "costs.parquet")
    return Run(directory)


@pytest.mark.parametrize(
    ("sizes", "other_sizes", "belongs"),
    [
        ([40, 30, 20, 30], [40, 30, 20, 30], [40, 30, 20, 30]),  # the same batches
        ([60, 60], [20, 40, 30, 30], [60, 60]),  # finer ones
        ([40, 40, 40], [60, 20, 40], [80, 40]),  # 60 of one lie in two of the other
    ],
    ids=["same", "finer", "across"],
)
def test_units_that_share_a_time_are_one_measurement(
    first: Run, tmp_path: Path, sizes: list[int], other_sizes: list[int], belongs: list[int]
) -> None:
    before, after = 0.01 * np.arange(1, len(sizes) + 1), 0.013 * np.arange(1, len(other_sizes) + 1) ** 1.5
    runs = [
        with_batches(first, of, seconds, tmp_path / name)
        for of, seconds, name in ((sizes, before, "a"), (other_sizes, after, "b"))
    ]
    (found,) = [d for d in compare(*runs).differences if (d.cell, d.metric) == (SHAP, "time")]
    changes = np.repeat(after, other_sizes) - np.repeat(before, sizes)
    batches = np.repeat(np.arange(len(belongs)), belongs)
    draws = np.random.default_rng(0).integers(0, len(belongs), (20_000, len(belongs)))
    sums, counts = np.bincount(batches, changes), np.bincount(batches)
    expected = np.quantile(sums[draws].sum(axis=1) / counts[draws].sum(axis=1), [0.025, 0.975])
    assert found.difference == pytest.approx(changes.mean())
    assert [found.ci_low, found.ci_high] == pytest.approx(expected, rel=0.02)


def test_one_batch_says_nothing_of_the_spread_of_times(first: Run, tmp_path: Path) -> None:
    runs = [with_batches(first, [120], [time], tmp_path / f"{time}") for time in (0.01, 0.005)]
    (found,) = [d for d in compare(*runs).differences if (d.cell, d.metric) == (SHAP, "time")]
    assert found.difference == pytest.approx(-0.005)
    assert np.isnan([found.ci_low, found.ci_high]).all() and found.verdict == "no significant difference"


def test_a_command_is_shown_as_it_was_called(first: Run, other: Callable[..., Run]) -> None:
    second = other()
    (second.directory / "environment.json").write_text('{"command": ["run", "a.yaml"]}')
    found = {change.name: change.second for change in compare(first, second).environment}
    assert json.loads(found["command"] or "") == ["run", "a.yaml"]


def test_an_independent_interval_is_that_of_two_resampled_means() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.exponential(1.0, 400), draw.normal(1.2, 0.5, 300)
    means = [
        np.sort(sample[draw.integers(0, len(sample), (20_000, len(sample)))].mean(axis=1))
        for sample in (first, second)
    ]
    expected = np.quantile(draw.permutation(means[1]) - draw.permutation(means[0]), [0.025, 0.975])
    bounds = [bootstrap_interval(sample) for sample in (first, second)]
    found = independent_interval(first.mean(), *map(float, bounds[0]), second.mean(), *map(float, bounds[1]))
    assert found == pytest.approx(expected.tolist(), abs=0.01)


def test_cells_of_one_run_only_and_other_outcomes_are_listed(first: Run, other: Callable[..., Run]) -> None:
    def change(plan: dict) -> None:  # type: ignore[type-arg]
        del plan["cells"][0]
        plan["cells"][0] |= {"status": "failed", "reason": "ValueError: no | bar"}

    found = compare(first, other(plan=change))
    assert found.only_first == ("toy-shop/mf/lime-rs/item/5",)
    assert Change(SHAP, "ok", "failed: ValueError: no | bar") in found.outcomes
    assert compare(other_way := Run(found.second), first).only_second == found.only_first
    assert r"no \| bar" in found.render("markdown") and "no | bar" in found.render("table")
    assert other_way.cells("failed")


def test_components_of_a_list_are_compared_by_their_names(other: Callable[..., Run], tmp_path: Path) -> None:
    second = other()
    before = Run(shutil.copytree(second.directory, tmp_path / "before"))
    for run, text in (
        (before, "explainers: [lime, {name: cf2, beta: 1}, {name: shap, label: a}]"),
        (second, "explainers: [{name: cf2, beta: 2, note: " + "x" * 100 + "}, lime, {name: shap, label: b}]"),
    ):
        (run.directory / "config.yaml").write_text(f"{text}\n")
    found = compare(before, second)
    assert [change.name for change in found.config] == [
        "explainers.cf2.beta",
        "explainers.cf2.note",
        "explainers.a",
        "explainers.b",
    ]
    assert found.config[1].second == "x" * 100
    assert max(len(line) for line in found.render().splitlines() if "explainers." in line) < 160


def test_settings_that_differ_are_named_with_their_dots(first: Run, other: Callable[..., Run]) -> None:
    second = other()
    (second.directory / "config.yaml").write_text("suite: shop\nprotocol:\n  k:\n  - 3\n  users: 7\n")
    (second.directory / "environment.json").write_text(
        '{"packages": {"numpy": "2.4.6"}, "cores": 4, "seed": 0}'
    )
    found = compare(first, second)
    assert set(found.config) == {
        Change("seed", "0", None),
        Change("protocol.k", "[5]", "[3]"),
        Change("protocol.users", None, "7"),
    }
    assert set(found.environment) == {
        Change("packages.cfbench-core", "0.1.0", None),
        Change("cores", "2", "4"),
    }
    assert "(not set)" in found.render()
