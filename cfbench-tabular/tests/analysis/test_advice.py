"""Trees that tell which explainer suits, and whether they know anything."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_tabular.analysis.advice import ADVISED, ALWAYS, Advice, Config

advice = Advice(Config())
SETS = 6


def study(make_cell: Any, rule: Any, sets: int = SETS, size: int = 20) -> tuple[list[Any], dict[str, Any]]:
    """Cells in which a is nearer than b where ``rule(data set's number, score of the factual)``."""
    draw, cells, data = np.random.default_rng(0), [], {}
    for number in range(sets):
        name = f"d{number}"
        data[name] = {"training_rows": 100 * (number + 1), "numeric_columns": 3, "encoded_columns": 3}
        scores = draw.uniform(0.5, 1.0, size)
        wins = np.array([rule(number, score) for score in scores])
        details = {"factual score": scores, "enemy distance": draw.uniform(1, 2, size)}
        for who, distance in (("a", np.where(wins, 1.0, 2.0)), ("b", np.full(size, 1.5))):
            metrics = {"feasible": [1] * size, "L2": distance}
            cells.append(make_cell(who, metrics, dataset=name, details=details))
    return cells, data


def of(table: pd.DataFrame, part: str, metric: str = "L2") -> pd.DataFrame:
    return table[(table["part"] == part) & (table["metric"] == metric)]


def test_a_rule_of_the_factual_is_found_and_holds_on_other_data(write: Any, make_cell: Any) -> None:
    """a suits factuals of which the classifier is not sure."""
    cells, data = study(make_cell, lambda number, score: score < 0.75)
    table = advice.table([write(*cells, data=data)])
    tree = of(table, "tree").set_index("node")
    name, threshold = tree.loc[0, "condition"].split(" <= ")
    assert name == "factual score" and float(threshold) == pytest.approx(0.75, abs=0.02)
    below, above = (
        tree[(tree["parent"] == 0) & (tree["branch"] == branch)].iloc[0] for branch in ("yes", "no")
    )
    assert (below["explainer"], above["explainer"]) == ("a", "b")
    assert (
        below["value"] == above["value"] == 1.0 and below["n"] + above["n"] == tree.loc[0, "n"] == SETS * 20
    )
    accuracy = of(table, "accuracy").set_index("explainer")["value"]
    assert accuracy[ADVISED] > 0.95 > 0.7 > accuracy[ALWAYS]
    assert "beat always choosing the overall best for 1 of" in advice.words(table)


def test_a_rule_of_the_data_set_alone_does_not_reach_other_data(write: Any, make_cell: Any) -> None:
    """Which of them wins is a coin for each data set: the tree learns it by heart, and knows nothing of others."""
    coins = [True, False, False, True, True, False]
    cells, data = study(make_cell, lambda number, score: coins[number])
    table = advice.table([write(*cells, data=data)])
    assert of(table, "tree")["value"].max() == 1.0
    accuracy = of(table, "accuracy").set_index("explainer")["value"]
    assert accuracy[ADVISED] <= 0.67


def test_the_tree_is_that_of_scikit_learn_and_accuracies_are_literal(write: Any, make_cell: Any) -> None:
    from sklearn.tree import DecisionTreeClassifier

    cells, data = study(make_cell, lambda number, score: score < 0.6 or number == 2)
    run = write(*cells, data=data)
    table = advice.table([run])
    wide = run.scores.query("metric == 'L2'").pivot(
        index=["dataset", "unit"], columns="explainer", values="value"
    )
    details = run.details.drop_duplicates(["cell", "unit", "name"])
    details = details[details["cell"].str.endswith("/a")].assign(
        dataset=lambda d: d["cell"].str.split("/").str[0]
    )
    facts = details.pivot(index=["dataset", "unit"], columns="name", values="value").loc[wide.index]
    rows = [data[name]["training_rows"] for name in wide.index.get_level_values("dataset")]
    x = np.column_stack([rows, facts["factual score"], facts["enemy distance"]])
    y = np.where(wide["a"] < wide["b"], "a", "b")
    right, sets = [], wide.index.get_level_values("dataset")
    for held in data:
        own = sets == held
        tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x[~own], y[~own])
        right.append((tree.predict(x[own]) == y[own]).mean())
    accuracy = of(table, "accuracy").set_index("explainer")["value"]
    assert accuracy[ADVISED] == pytest.approx(
        np.mean(right), abs=0.06
    )  # equal splits may go to another feature
    assert accuracy[ALWAYS] == pytest.approx(np.mean([(y[sets == held] == "b").mean() for held in data]))


def test_ties_share_a_win_and_failures_win_nothing(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"feasible": [1, 1, 1, 0], "L2": [1.0, 1.0, 9.0, None]}),
        make_cell("b", {"feasible": [1, 1, 0, 0], "L2": [1.0, 2.0, 0.1, None]}),
    )
    root = of(advice.table([run]), "tree").iloc[0]
    assert root["explainer"] == "a" and root["n"] == 3  # no one answered the fourth
    assert root["value"] == pytest.approx((0.5 + 1 + 1) / 3)


def test_a_leaf_names_all_that_tie_and_a_split_without_a_difference_is_merged(
    write: Any, make_cell: Any
) -> None:
    """Six explainers tie in every row; the seventh has the only answer to rows with a high score."""
    scores = np.linspace(0.5, 1.0, 40)
    hard = scores > 0.8
    cells = [
        make_cell(
            name,
            {"feasible": np.where(hard, 0, 1), "L2": np.full(40, 1.0)},
            details={"factual score": scores},
        )
        for name in "abcdef"
    ]
    cells.append(make_cell("g", {"feasible": np.where(hard, 1, 0), "L2": np.full(40, 2.0)}))
    queries = Advice(Config(score=0.6))
    table = queries.table([write(*cells)])
    tree = of(table, "tree", "validity")
    assert len(tree) == 3, "one question, although deeper trees are allowed"
    advised = dict(zip(tree["branch"], tree["explainer"], strict=True))
    assert advised["yes"] == "a, b, c, d, e, f" and advised["no"] == "g"
    assert "a, b, c, d, e and f are advised by all metrics" in queries.words(table)
    assert "a, b, c, d, e, f: each win 17% of 24 factuals" in queries.text(table)


def test_an_advised_explainer_that_answers_fewer_rows_is_said_to(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"feasible": [1, 1, 1, 0], "L2": [1.0, 1.0, 1.0, None]}),
        make_cell("b", {"feasible": [1, 1, 1, 1], "L2": [2.0, 2.0, 2.0, 2.0]}),
    )
    queries = Advice(Config(metrics=("validity", "L2", "sparsity")))
    table = queries.table([run])
    assert dict(of(table, "counted", "validity")[["explainer", "value"]].to_numpy()) == {"a": 0.75, "b": 1.0}
    assert (
        "feasible counterfactuals for fewer of the factuals that any explainer explains than others: a for 75%, "
        in (queries.words(table))
    )


def test_a_missing_feature_is_asked_for_in_words(write: Any, make_cell: Any) -> None:
    """a is nearer for networks, b for forests, which have no neurons."""
    runs = []
    for model, summary, near in (("mlp", {"neurons": 8}, "a"), ("forest", {}, "b")):
        distances = {who: [1.0 if who == near else 2.0] * 12 for who in "ab"}
        cells = [make_cell(who, {"feasible": [1] * 12, "L2": distances[who]}, model=model) for who in "ab"]
        runs.append(write(*cells, name=model, models={f"{model} on flowers": summary}))
    tree = of(advice.table(runs), "tree")
    assert tree["condition"].tolist() == ["a network", "", ""]
    assert dict(zip(tree["branch"], tree["explainer"], strict=True)) == {"": "a, b", "yes": "a", "no": "b"}


def test_with_few_data_sets_it_says_that_nothing_is_known(write: Any, make_cell: Any) -> None:
    cells, data = study(make_cell, lambda number, score: score < 0.75, sets=2)
    table = advice.table([write(*cells, data=data)])
    assert of(table, "accuracy").empty
    assert "it is unknown whether the trees generalise" in advice.words(table)
    assert "Not validated" in advice.figures(table)[0].note


def test_suggestions_are_for_the_configured_setting(write: Any, make_cell: Any) -> None:
    cells, data = study(make_cell, lambda number, score: score < 0.75)
    run = write(*cells, data=data)
    for score, who in ((0.55, "a"), (0.95, "b")):
        queries = Advice(Config(metrics=("L2",), score=score))
        table = queries.table([run])
        own = of(table, "suggestion").set_index("explainer")["value"]
        assert own[who] == 100 and own.drop(who).item() == 0
        overall = of(table, "suggestion", "overall").set_index("explainer")["value"]
        assert overall[who] == 100
        assert f"For factual score {score:g} {who} is advised" in queries.words(table)


@pytest.mark.slow
def test_figures_of_a_real_run_are_redrawn_from_a_stored_table(real_run: Any) -> None:
    assert advice.incompatibility([real_run]) == ""
    table = advice.table([real_run])
    assert set(table["metric"]) == {"validity", "sparsity", "L2", "MADD", "MD", "overall"}
    selected = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    figures = advice.figures(table)
    assert [f.svg for f in advice.figures(selected)] == [f.svg for f in figures] and len(figures) == 6
    assert advice.words(selected) == advice.words(table)
    questions = " ".join(table["condition"].fillna(""))
    assert any(name in questions for name in ("factual score", "enemy distance", "training rows", "columns"))


def test_one_explainer_is_no_question(write: Any, make_cell: Any) -> None:
    run = write(make_cell("a", {"feasible": [1], "L2": [1.0]}))
    assert advice.incompatibility([run]) == "needs two explainers or more that compete"


def test_on_a_terminal_trees_are_questions_with_what_follows_from_yes_and_no(
    write: Any, make_cell: Any
) -> None:
    cells, data = study(make_cell, lambda number, score: score < 0.75)
    queries = Advice(Config(metrics=("L2",), depth=1))
    lines = queries.text(queries.table([write(*cells, data=data)])).splitlines()
    assert lines[:3] == [
        "Suggestions (100: most wins in the leaf; overall: the mean over metrics)",
        "    overall        L2",
        "b       100       100",
    ] or lines[2].startswith("a")
    start = lines.index("Best explainer by L2, feasible counterfactuals")
    assert lines[start + 1].startswith("  factual score <= 0.7")
    assert lines[start + 2].startswith("   yes a: wins 100% of ") and lines[start + 3].startswith(
        "    no b: wins 100% of "
    )


def test_strategies_are_advised_in_place_of_their_explainers(write: Any, make_cell: Any) -> None:
    """SEDC and LORE, heuristics, win for unsure factuals, CADEX for the others."""
    cells, data = study(make_cell, lambda number, score: score < 0.75)
    names = {"a": "sedc", "b": "cadex"}
    cells = [{**one, "explainer": names[one["explainer"]]} for one in cells]
    cells += [{**one, "explainer": "lore"} for one in cells if one["explainer"] == "sedc"]
    run = write(*cells, data=data)
    table = Advice(Config(by="strategy")).table([run])
    assert set(of(table, "tree")["explainer"]) == {"heuristic search", "convex optimisation"}
    alone = advice.table([run])
    assert "heuristic search" not in set(of(alone, "tree")["explainer"])
    root, same = (of(one, "tree").set_index("node").loc[0] for one in (table, alone))
    assert root["n"] == same["n"] and root["condition"] == same["condition"]
    accuracy = of(table, "accuracy").set_index("explainer")["value"]
    assert accuracy[ADVISED] > 0.95
    (figure, *_) = Advice(Config(by="strategy")).figures(table)
    assert figure.title.startswith("Best strategy by")
