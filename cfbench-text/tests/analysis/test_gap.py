"""Surface against factuality: closed forms, scipy and a bootstrap written out as oracles."""

import io

import numpy as np
import pandas as pd
import pytest

from cfbench_text.analysis.gap import Gap, correlations, interval_of_r


def test_a_small_example_by_hand():
    # x and y agree but for one pair: of three pairs two are in order.
    assert correlations(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0])) == pytest.approx(
        (0.5, 0.5, 1 / 3)
    )


def test_correlations_are_those_of_scipy():
    from scipy import stats

    draw = np.random.default_rng(0)
    x = draw.integers(0, 6, 80) / 5
    y = x + draw.normal(size=80)
    expected = [stats.pearsonr(x, y)[0], stats.spearmanr(x, y)[0], stats.kendalltau(x, y)[0]]
    assert correlations(x, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [3, 4]), ([1, 1, 1], [1, 2, 3]), ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3])]
)
def test_without_spread_or_points_there_is_no_correlation(x, y):
    assert np.isnan(correlations(np.array(x, float), np.array(y, float))).all()


def test_the_interval_is_that_of_drawing_users_by_hand():
    draw = np.random.default_rng(1)
    users = np.repeat(np.arange(30), 4)
    x = np.repeat(draw.normal(size=30), 4) + 0.3 * draw.normal(size=120) + 100
    y = 0.7 * x + draw.normal(size=120)
    by_hand = []
    for _ in range(2000):
        rows = np.concatenate([np.flatnonzero(users == one) for one in draw.integers(0, 30, 30)])
        by_hand.append(np.corrcoef(x[rows], y[rows])[0, 1])
    assert interval_of_r(x, y, users) == pytest.approx(np.quantile(by_hand, [0.025, 0.975]), abs=0.03)


def test_one_user_has_no_interval():
    assert np.isnan(interval_of_r(np.arange(4.0), np.arange(4.0) ** 2, np.zeros(4))).all()


def test_the_means_are_those_of_the_rows_that_have_both(run, answer):
    table = answer("gap").table
    row = table.query("level == 'model' and model == 'item-review' and surface == 'BLEU'").iloc[0]
    scores = run.scores[run.scores["model"] == "item-review"].pivot(
        index="unit", columns="metric", values="value"
    )
    both = scores[["BLEU", row["factuality"]]].dropna()
    assert (row["x"], row["y"], row["n"]) == pytest.approx((*both.mean(), len(both)))
    assert row["r"] == pytest.approx(both.corr().iloc[0, 1])


def test_controls_are_marked_and_in_no_correlation_of_several(run, answer):
    found = answer("gap")
    pooled = found.table.query("level == 'rows' and surface == 'BLEU'").iloc[0]
    competing = run.scores[run.scores["model"].isin(["item-review", "again"])]
    wide = competing.pivot(index=["model", "unit"], columns="metric", values="value")
    assert pooled["r"] == pytest.approx(wide["BLEU"].corr(wide[pooled["factuality"]]))
    assert (found.table.query("level == 'models'")["n"] == 2).all()
    assert found.table.query("level == 'models'")["r"].isna().all()  # two points always correlate
    assert "shuffled-reference" in found.figures[0].svg


def test_three_competitors_have_a_correlation_over_models():
    from cfbench_text.analysis.gap import _pair

    places = {"a": (0.1, 0.5), "b": (0.2, 0.7), "c": (0.3, 0.6)}
    rows = pd.DataFrame(
        [(m, "", f"u{k}", x + k / 9, y + k / 9) for m, (x, y) in places.items() for k in (-1, 0, 1)],
        columns=["model", "role", "user", "x", "y"],
    )
    last = list(_pair(rows))[-1]
    assert last["level"] == "models" and last["n"] == 3
    assert (last["r"], last["rho"], last["tau"]) == pytest.approx((0.5, 0.5, 1 / 3))


def test_a_stored_table_gives_the_same_figures(answer):
    found = answer("gap")
    again = pd.read_csv(io.StringIO(found.table.to_csv(index=False)))
    assert [figure.svg for figure in Gap().figures(again)] == [figure.svg for figure in found.figures]
    assert [figure.note for figure in Gap().figures(again)] == [figure.note for figure in found.figures]
    assert Gap().words(again) == found.words and "r = " in found.words


def test_the_error_names_what_is_missing(run):
    class OnlySurface:
        columns = tuple(column for column in run.columns if not column.name.startswith("St"))

        def cells(self):
            return run.cells()

    assert Gap().incompatibility([run]) == ""
    assert Gap().incompatibility([OnlySurface()]).startswith("needs a metric of surface")


def test_of_two_runs_with_the_same_cells_the_later_counts(run, answer):
    from cfbench_core.run_directory import Run

    again = Gap().table([Run(run.directory), run, run])
    pd.testing.assert_frame_equal(again, answer("gap").table)
