"""Which explainer suits which data, model and row? (Paper 003, section 5, figures 8 and 9, appendix C.)

For each metric a decision tree (scikit-learn, depth 3, random state 0, as the paper) learns from every factual of
the runs which explainer answered it best. Its features are the paper's eight and two more: of the data training
rows, numeric columns, categorical columns and the share of encoded columns that are one-hot; of the model neurons
and test AUC; of the factual whether it is misclassified, its predicted probability, the share of its class, and
the distance to the nearest training row of the other class.

Where several explainers tie as best, the factual counts for each of them with an equal part of its weight (the
paper adds a whole row for each, so that a factual on which all tie weighs ten times another). Factuals that
nobody answered say nothing. Controls are not advised.

Does the tree know anything? Each data set in turn is held out, and the tree that learnt from the others is asked
for its factuals: its accuracy is the share of them for which the advised explainer is among the best, beside that
of always taking whoever was best most often on the same others. With two data sets or fewer there is no such test.
A tree that does no better than "always the same" should not be followed, and the words say so.

The suggestions are the paper's figure 9: for a setting (options ``rows``, ``auc``, ...; what is not given is the
median of the runs) each explainer's share in the leaf of each metric's tree that the setting falls into, on a
scale on which the best is 100, and the mean over metrics. They are shares of factuals won, not chances to find
an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.analysis.lessons import FEATURES, Lessons, lessons
from cfbench_tabular.analysis.shared import (
    JUDGES,
    FloatArray,
    counted,
    finished,
    groups_of,
    listed,
    tidied,
)
from cfbench_tabular.facts import ENEMY, SCORE, SHARE

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import Node
    from cfbench_core.run_directory import Run

TREE, ACCURACY, SUGGESTION = "tree", "accuracy", "suggestion"
ADVISED, ALWAYS = "as the tree says", "always the overall best"
OVERALL = "overall"
FEWEST = 3
"""Data sets, for holding one out to say anything."""


@dataclass(frozen=True, kw_only=True)
class Config:
    metrics: Annotated[tuple[str, ...], Help("a tree for each")] = (
        "coverage",
        "sparsity",
        "L2",
        "MADD",
        "MD",
    )
    answers: Annotated[Literal["valid", "realistic"], Help("which answers count")] = "valid"
    depth: Annotated[int, Range(minimum=1, maximum=6), Help("questions before an answer, at most")] = 3
    rows: Annotated[int | None, Range(minimum=1), Help("training rows of your data")] = None
    numeric_columns: Annotated[int | None, Range(minimum=0), Help("of your data")] = None
    categorical_columns: Annotated[int | None, Range(minimum=0), Help("of your data")] = None
    one_hot_share: Annotated[
        float | None, Range(minimum=0, maximum=1), Help("of its encoded columns, in categories")
    ] = None
    neurons: Annotated[int | None, Range(minimum=0), Help("of your network, in hidden layers")] = None
    auc: Annotated[float | None, Range(minimum=0, maximum=1), Help("of your model, on test rows")] = None
    score: Annotated[
        float | None, Range(minimum=0.5, maximum=1), Help("probability of the row's predicted class")
    ] = None
    share: Annotated[float | None, Range(minimum=0, maximum=1), Help("of the rows, in the row's class")] = (
        None
    )
    enemy_distance: Annotated[
        float | None, Range(minimum=0), Help("standard deviations to the nearest row of the other class")
    ] = None

    def setting(self) -> dict[str, float]:
        """The features that were given, by name."""
        given = {
            "training rows": self.rows,
            "numeric columns": self.numeric_columns,
            "categorical columns": self.categorical_columns,
            "one-hot share": self.one_hot_share,
            "neurons": self.neurons,
            "test AUC": self.auc,
            SCORE: self.score,
            SHARE: self.share,
            ENEMY: self.enemy_distance,
        }
        return {name: float(value) for name, value in given.items() if value is not None}


class Advice:
    def __init__(self, config: Config) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if not finished(runs, JUDGES[self.config.answers]):
            return f"needs the metric {JUDGES[self.config.answers]}"
        explainers = {
            str(cell.labels["explainer"])
            for run in runs
            for cell in run.cells()
            if cell.done and not cell.role
        }
        return "" if len(explainers) > 1 else "needs two explainers or more that compete"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: part (tree, accuracy, suggestion), metric, answers, node, parent, branch (yes, no), question,
        explainer, value (a share, an accuracy, or a score up to 100), n (factuals)."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        shares: dict[str, dict[str, float]] = {}
        for metric in self.config.metrics:
            told = lessons(runs, metric, JUDGES[self.config.answers])
            if told is None:
                continue
            labels = {"metric": metric, "answers": self.config.answers}
            tree = _learnt(told.features, told.best, self.config.depth)
            rows += [{"part": TREE, **labels, **row} for row in _nodes(tree, told)]
            rows += [{"part": ACCURACY, **labels, **row} for row in _held_out(told, self.config.depth)]
            shares[metric] = self._suggested(tree, told)
        rows += [{"part": SUGGESTION, "answers": self.config.answers, **row} for row in _scores(shares)]
        columns = [
            "part",
            "metric",
            "answers",
            "node",
            "parent",
            "branch",
            "question",
            "explainer",
            "value",
            "n",
        ]
        return pd.DataFrame(rows, columns=columns)

    def _suggested(self, tree: Any, told: Lessons) -> dict[str, float]:
        """The share of each explainer in the leaf of the setting that was asked for."""
        given = self.config.setting()
        known = [column[~np.isnan(column)] for column in told.features.T]
        middle = [float(np.median(column)) if len(column) else np.nan for column in known]
        asked = [given.get(name, value) for name, value in zip(FEATURES, middle, strict=True)]
        found = np.zeros(len(told.names))
        found[tree.classes_.astype(int)] = tree.predict_proba(np.array([asked]))[0]
        return dict(zip(told.names, found.tolist(), strict=True))

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import tree_chart

        table, drawn = tidied(table), []
        for labels, rows in groups_of(table[table["part"] == TREE], ("metric", "answers")):
            accuracy = table[(table["part"] == ACCURACY) & (table["metric"] == labels["metric"])]
            heading = f"Who is best by {labels['metric']}, {labels['answers']} answers"
            svg = tree_chart(_as_node(rows, 0), title=heading)
            drawn.append(Figure(heading, svg, _tested(accuracy), wide=True))
        suggestions = table[table["part"] == SUGGESTION]
        return [*drawn, *([_suggestions(suggestions)] if len(suggestions) else [])]

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        if table.empty:
            return ""
        overall = table[(table["part"] == SUGGESTION) & (table["metric"] == OVERALL)]
        best = overall.sort_values("value", ascending=False, kind="stable").iloc[0]
        others = [
            f"{row['explainer']} by {row['metric']}"
            for row in _winners(table)
            if row["explainer"] != best["explainer"]
        ]
        given = self.config.setting()
        where = ", ".join(f"{name} {value:g}" for name, value in given.items())
        said = f"For {where or 'a typical row of these runs'} {best['explainer']} is advised over all metrics"
        said += f" ({'; '.join(others)})." if others else ", and by each of them."
        return f"{said} {_honest(table)}"

    def text(self, table: pd.DataFrame) -> str:
        """The suggestions, and every tree with its accuracy, for a terminal."""
        table = tidied(table)
        parts = [_suggestions_as_text(table[table["part"] == SUGGESTION])]
        for labels, rows in groups_of(table[table["part"] == TREE], ("metric", "answers")):
            accuracy = table[(table["part"] == ACCURACY) & (table["metric"] == labels["metric"])]
            head = f"Who is best by {labels['metric']}, {labels['answers']} answers?"
            parts.append("\n".join([head, *_lines(_as_node(rows, 0), "  "), f"  {_tested(accuracy)}"]))
        return "\n\n".join(part for part in parts if part)


# Trees


def _learnt(features: FloatArray, best: FloatArray, depth: int) -> Any:
    """A tree whose classes are the numbers of explainers."""
    from sklearn.tree import DecisionTreeClassifier

    factual, winner = np.nonzero(best)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    return tree.fit(features[factual], winner, sample_weight=best[factual, winner])


def _nodes(fitted: Any, told: Lessons) -> Iterator[dict[str, Any]]:
    """A row for each node: what it asks (empty for a leaf), who is best of its factuals, and of which share."""
    tree = fitted.tree_
    parents = {0: (-1, "")}
    reached = np.asarray(fitted.decision_path(told.features).sum(axis=0)).ravel()
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left >= 0:
            parents |= {left: (node, "yes"), right: (node, "no")}
        shares = tree.value[node][0] / tree.value[node][0].sum()
        parent, branch = parents[node]
        question = ""
        if left >= 0:
            question = f"{FEATURES[tree.feature[node]]} <= {_short(tree.threshold[node])}"
            if tree.missing_go_to_left[node] and np.isnan(told.features[:, tree.feature[node]]).any():
                question += " or not known"
        yield {
            "node": node,
            "parent": parent,
            "branch": branch,
            "question": question,
            "explainer": told.names[int(fitted.classes_[int(np.argmax(shares))])],
            "value": float(shares.max()),
            "n": int(reached[node]),
        }


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _held_out(told: Lessons, depth: int) -> Iterator[dict[str, Any]]:
    """The accuracy of the tree and of "always the same", each data set being asked of those that learnt from others."""
    sources = list(dict.fromkeys(told.source.tolist()))
    if len(sources) < FEWEST:
        return
    right = {ADVISED: np.zeros(len(told.best)), ALWAYS: np.zeros(len(told.best))}
    for held in sources:
        test = told.source == held
        learnt = _learnt(told.features[~test], told.best[~test], depth)
        advised = learnt.predict(told.features[test]).astype(int)
        always = int(np.argmax(told.best[~test].sum(axis=0)))
        won = told.best[test] > 0
        right[ADVISED][test] = won[np.arange(len(won)), advised]
        right[ALWAYS][test] = won[:, always]
    for who, hits in right.items():
        # Each data set counts the same, however many factuals it has.
        accuracy = float(np.mean([hits[told.source == one].mean() for one in sources]))
        yield {"explainer": who, "value": accuracy, "n": len(hits)}


def _scores(shares: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """Up to 100 for the best by each metric, 0 for who never is best there; and their mean."""
    if not shares:
        return
    names = list(dict.fromkeys(name for own in shares.values() for name in own))
    scaled = {
        metric: {name: 100 * own.get(name, 0.0) / max(own.values()) for name in names}
        for metric, own in shares.items()
    }
    overall = {name: float(np.mean([own[name] for own in scaled.values()])) for name in names}
    for metric, own in {OVERALL: overall, **scaled}.items():
        for name in sorted(names, key=lambda name: -overall[name]):
            yield {"metric": metric, "explainer": name, "value": own[name]}


# Pictures and words


def _as_node(rows: pd.DataFrame, number: int) -> Node:
    from cfbench_core.reports.charts import Node

    row = rows[rows["node"] == number].iloc[0]
    below = rows[rows["parent"] == number]
    size, wins = counted(int(row["n"]), "factual"), f"wins {row['value']:.0%}"
    leaf = (row["explainer"], size, wins)
    lines = (row["question"], size, f"{row['explainer']} {wins}") if row["question"] else leaf
    branches = tuple(
        (branch, _as_node(rows, int(node)))
        for branch, node in zip(below["branch"], below["node"], strict=True)
    )
    return Node(lines, float(row["value"]), branches)


def _suggestions(rows: pd.DataFrame) -> Figure:
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import heat_map

    wide = rows.pivot(index="explainer", columns="metric", values="value")
    metrics = list(dict.fromkeys(rows["metric"]))
    wide = wide.reindex(index=list(dict.fromkeys(rows["explainer"])), columns=metrics)
    heading = "Suggestions, by the leaf of each metric's tree"
    svg = heat_map(
        list(wide.index),
        metrics,
        wide.to_numpy(dtype=float),
        title=heading,
        direction="higher",
        text=[[f"{value:.0f}" for value in own] for own in wide.to_numpy(dtype=float)],
        hint="100: most wins in the leaf; overall: the mean over metrics",
    )
    return Figure(heading, svg, "Shares of wins in the leaf, not chances to find an answer.")


def _lines(node: Node, indent: str) -> Iterator[str]:
    """A tree as text: a question and below it what follows from yes and no; an answer on one line."""
    if not node.branches:
        yield f"{indent}{node.lines[0]}: {node.lines[2]} of {node.lines[1]}"
        return
    yield f"{indent}{node.lines[0]}?"
    for label, below in node.branches:
        first, *others = _lines(below, f"{indent}     ")
        yield f"{indent}{label:>4} {first.lstrip()}"
        yield from others


def _suggestions_as_text(rows: pd.DataFrame) -> str:
    metrics, names = list(dict.fromkeys(rows["metric"])), list(dict.fromkeys(rows["explainer"]))
    if not names:
        return ""
    wide = rows.pivot(index="explainer", columns="metric", values="value")
    first, width = max(map(len, names)), [max(8, len(metric)) for metric in metrics]
    lines = [" " * first + "".join(f"  {metric:>{w}}" for metric, w in zip(metrics, width, strict=True))]
    for name in names:
        scores = (f"  {wide.loc[name, m]:>{w}.0f}" for m, w in zip(metrics, width, strict=True))
        lines.append(f"{name:<{first}}{''.join(scores)}")
    return "\n".join(["Suggestions (100: most wins in the leaf; overall: the mean over metrics)", *lines])


def _accuracies(rows: pd.DataFrame) -> tuple[float, float] | None:
    by = rows.set_index("explainer")["value"]
    return (float(by[ADVISED]), float(by[ALWAYS])) if len(by) else None


def _tested(rows: pd.DataFrame) -> str:
    both = _accuracies(rows)
    if both is None:
        return "Ties share a win. Too few data sets to hold one out: not tested."
    tree, always = both
    return (
        f"Ties share a win. On data sets held out it is right for {tree:.0%} of factuals; always the overall best: "
        f"{always:.0%}."
    )


def _winners(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each metric the best suggestion."""
    rows = table[(table["part"] == SUGGESTION) & (table["metric"] != OVERALL)]
    ordered = rows.sort_values("value", ascending=False, kind="stable")
    best = [own.iloc[0] for _, own in ordered.groupby("metric", sort=False)]
    return [{str(name): value for name, value in row.items()} for row in best]


def _honest(table: pd.DataFrame) -> str:
    """Whether the trees know more than "always the same"."""
    tested = {
        labels["metric"]: _accuracies(rows)
        for labels, rows in groups_of(table[table["part"] == ACCURACY], ("metric",))
    }
    known = {metric: both for metric, both in tested.items() if both is not None}
    if not known:
        return (
            f"With fewer than {FEWEST} data sets nothing can be held out: whether these trees know anything about other "
            "data is not known."
        )
    better = [metric for metric, (tree, always) in known.items() if tree > always]
    numbers = "; ".join(
        f"{metric} {tree:.0%} against {always:.0%}" for metric, (tree, always) in known.items()
    )
    if not better:
        verdict = "take the overall best, not the trees"
    elif len(better) < len(known):
        verdict = f"follow the trees for {listed(better)} only"
    else:
        verdict = "the trees may be followed"
    return (
        f"On data sets held out the trees beat always taking the overall best for {len(better)} of {len(known)} "
        f"metrics ({numbers}): {verdict}."
    )
