"""Several counterfactuals for each factual: how they are requested, stored and averaged."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.observations import observed_of_several
from cfbench_tabular.testing import example_data

LADDER = """
    import numpy as np

    class Ladder:
        '''The third column moved to the other side, one step further for each answer; every third unit fails.'''
        provides = {"columns": frozenset({"numeric"}), "counterfactuals": frozenset({"several"})}
        def __init__(self, config): ...
        def counterfactuals(self, model, factuals, context):
            answers = np.repeat(factuals.vectors[:, None], context.counterfactuals_per_instance, axis=1)
            for step in range(context.counterfactuals_per_instance):
                answers[:, step, 2] = np.where(factuals.classes == 1, -2.0, 2.0) * (1 + step)
            answers[:, 1:2] = np.where((np.arange(len(factuals)) % 3 == 0)[:, None, None], np.nan, answers[:, 1:2])
            return answers

    class Single:
        provides = {"columns": frozenset({"numeric"})}
        def __init__(self, config): ...
        def counterfactuals(self, model, factuals, context):
            answers = factuals.vectors.copy()
            answers[:, 2] = np.where(factuals.classes == 1, -2.0, 2.0)
            return answers

    class TooMany:
        provides = {"columns": frozenset({"numeric"}), "counterfactuals": frozenset({"several"})}
        def __init__(self, config): ...
        def counterfactuals(self, model, factuals, context):
            return np.repeat(factuals.vectors[:, None], context.counterfactuals_per_instance + 1, axis=1)

    class Hurried:
        '''Says what it may take, and takes no time.'''
        def __init__(self, config): ...
        def counterfactuals(self, model, factuals, context):
            from cfbench_tabular.explainers.base import Explanation
            seconds = np.nan if context.seconds is None else context.seconds
            return Explanation(-factuals.vectors, {"seconds": np.full(len(factuals), seconds)})

    class Loads:
        '''Loads a module on its first call, slowly, as libraries are.'''
        queries = []
        def __init__(self, config): ...
        def counterfactuals(self, model, factuals, context):
            import slow_to_load
            Loads.queries.append(len(factuals))
            return -factuals.vectors

    class Third:
        '''Class 1 where the third column is above its mean.'''
        def __init__(self, config): ...
        def fit(self, data, generator, report): ...
        def predict_proba(self, vectors):
            one = (vectors[:, 2] > 0).astype(float)
            return np.stack([1 - one, one], axis=1)
        def state(self): return {"nothing": np.zeros(1)}
        def load_state(self, state, data): ...
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "ladder.py").write_text(textwrap.dedent(LADDER))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "ladder", raising=False)
    return {
        "suite": "tabular",
        "data": ["iris"],
        "classifiers": [{"import": "ladder:Third"}],
        "explainers": [{"import": "ladder:Ladder"}, {"import": "ladder:Single"}],
        "protocol": {"factuals": 6, "counterfactuals_per_instance": 3},
        "metrics": ["validity", "l2", "sparsity"],
        "executor": "inline",
    }


def test_counterfactuals_are_numbered_and_their_scores_averaged(tmp_path, config):
    run = cfbench_core.run(config, out=tmp_path / "run")
    assert run.exit_code == 0
    ladder = run.explanations.query("explainer == 'ladder'")
    numbers = ladder.groupby("unit")["counterfactual"].agg(list)
    assert sorted(map(tuple, numbers)) == [(1, 2, 3)] * 8 + [(1, 3)] * 4
    single = run.explanations.query("explainer == 'single'")
    assert (single["counterfactual"] == 1).all()
    scores = run.scores.pivot(index=["explainer", "unit"], columns="metric", values="value")
    assert (scores["validity"] == 1.0).all()
    # the counterfactuals are 2, 4 and 6 beyond the mean, and the factual z before it: distances 2 + z, 4 + z, 6 + z
    first = scores["L2"].xs("single")
    middle = scores["L2"].xs("ladder")
    assert np.allclose(middle, first + 2.0, atol=1e-5)


def test_an_explainer_that_gives_one_counterfactual_says_so(tmp_path, config):
    run = cfbench_core.run(config, out=tmp_path / "run")
    reasons = {cell.labels["explainer"]: cell.reason for cell in run.cells()}
    assert reasons == {
        "ladder": "",
        "single": "gives one counterfactual per row, not 3 (protocol.counterfactuals_per_instance)",
    }
    one = {**config, "protocol": {"factuals": 6}}
    assert all(cell.reason == "" for cell in cfbench_core.run(one, out=tmp_path / "one").cells())


def test_more_counterfactuals_than_requested_are_refused(tmp_path, config):
    run = cfbench_core.run({**config, "explainers": [{"import": "ladder:TooMany"}]}, out=tmp_path / "run")
    assert "counterfactuals has shape (12, 4, 4), must be (12, 4) or (12, 3, 4)" in run.cells()[0].reason


def test_the_number_of_counterfactuals_leaves_the_work_of_explainers_that_give_one_alone(config):
    def keys(results):
        plan = api.plan({**config, "protocol": {"factuals": 6, "counterfactuals_per_instance": results}})
        return [cell.stages["explanations"].key for cell in plan.cells]

    (ladder, single), (other_ladder, same_single) = keys(3), keys(2)
    assert single == same_single and ladder != other_ladder


def test_the_table_of_a_run_with_several_counterfactuals_gives_the_same_scores_again(tmp_path, config):
    made = cfbench_core.run(config, out=tmp_path / "run")
    file = tmp_path / "made.csv"
    made.explanations.to_csv(file, index=False)
    again = cfbench_core.run(config, out=tmp_path / "again", explanations=file)
    pd.testing.assert_frame_equal(made.scores, again.scores, check_exact=True)


def test_each_observation_contains_all_counterfactuals_of_its_factual(linear):
    data = example_data()
    model = linear([1.0] + [0.0] * 6)
    vectors = np.zeros((3, 7))
    vectors[:, 0] = -1.0
    several = np.full((3, 2, 7), np.nan)
    several[0, 0] = several[0, 1] = several[1, 1] = 0.0
    several[0, 0, 0], several[0, 1, 0], several[1, 1, 0] = 1.0, -0.5, 2.0
    factuals = Factuals(vectors, np.zeros(3, dtype=np.int64), ("a", "b", "c"))
    owner, results = observed_of_several(model, factuals, several, data)
    assert owner.tolist() == [0, 0, 1, 2]
    assert results.valid.tolist() == [True, False, True, False]
    assert results.counterfactuals[:, 0].tolist()[:3] == [1.0, -0.5, 2.0]
    assert np.isnan(results.counterfactuals[3]).all()
    assert np.array_equal(results.alternatives, several[owner], equal_nan=True)
    assert results.alternatives_valid.tolist() == [[True, False]] * 2 + [[False, True], [False, False]]


def test_an_explainer_receives_the_time_limit(tmp_path, config):
    config = {**config, "explainers": [{"import": "ladder:Hurried"}]}
    for seconds in (None, 0.25):
        protocol = {"factuals": 6, **({} if seconds is None else {"seconds": seconds})}
        run = cfbench_core.run({**config, "protocol": protocol}, out=tmp_path / str(seconds))
        reported = run.details[run.details["name"] == "seconds"]["value"]
        assert reported.isna().all() if seconds is None else (reported == seconds).all()
    with pytest.raises(UserError, match=r"protocol.seconds: must be a number > 0"):
        api.plan({**config, "protocol": {"seconds": 0}})


def test_loading_code_is_not_part_of_the_time_of_a_counterfactual(tmp_path, config, monkeypatch):
    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.5)\n")
    monkeypatch.delitem(sys.modules, "slow_to_load", raising=False)
    run = cfbench_core.run(
        {**config, "explainers": [{"import": "ladder:Loads"}], "chunk": 6, "protocol": {"factuals": 6}},
        out=tmp_path / "run",
    )
    assert sys.modules["ladder"].Loads.queries == [6, 6, 6], "the first of two chunks is explained twice"
    assert run.costs["elapsed_seconds"].max() < 0.05
