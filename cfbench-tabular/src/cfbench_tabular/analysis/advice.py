"""Which explainer suits which data, model and row? (CF-tabular, section 5, figures 8 and 9, appendix C.)

For each metric a decision tree (scikit-learn, depth 3, random state 0, as in the paper) learns from every factual of
the runs which explainer is best for it. Its features are the eight of the paper and two more: of the data, training
rows, numeric columns, categorical columns and the share of encoded columns that are one-hot; of the model, neurons
and test AUC; of the factual, whether it is misclassified, its predicted probability, the share of its class, and the
distance to the nearest training row of the other class.

Where several explainers tie as best, the factual counts for each of them with an equal part of its weight (the paper
adds a whole row for each, so that a factual on which all tie weighs ten times another). Factuals that no explainer
explained are left out. Controls are not advised.

A leaf names all explainers that tie in it. Branches that advise the same are one leaf. A question whether a feature is
known divides the factuals that lack it (a forest has no neurons) from the others.

The trees are validated by holding out each data set in turn: the tree that was fitted to the others predicts its
factuals. The accuracy is the share of factuals for which the advised explainer is among the best, compared with that
of always choosing the explainer that was best most often on the training data sets. At least three data sets are
needed. A tree that is no better than this baseline should not be followed, and the summary says so.

``by: strategy`` advises one of the paper's three search strategies in place of an explainer, as figure 8 does (there for
categorical data and ``criterion: realistic``).

The suggestions are figure 9 of the paper: for a setting (options ``rows``, ``auc``, ...; by default the medians of the
runs) the share of each explainer in the leaf of each tree that the setting falls into, scaled so that the best is 100,
and the mean over metrics. They are shares of factuals won, not probabilities of finding a counterfactual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Distinct, Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of, join_words
from cfbench_tabular.analysis.advice_trees import fitted_tree, leaf_shares, nodes, tied
from cfbench_tabular.analysis.advisor_training import FEATURES, TrainingSet, by_strategy, training_set
from cfbench_tabular.analysis.run_data import (
    CRITERIA,
    VALID,
    finished,
    groups_of,
    tidied,
)
from cfbench_tabular.instance_features import ENEMY, SCORE, SHARE

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import Node
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="tabular/analysis/advice",
    summary="Decision trees that advise an explainer for given data, model and row",
    target=f"{__name__}:Advice",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
)


TREE, COUNTED, ACCURACY, SUGGESTION = "tree", "counted", "accuracy", "suggestion"
VALID_METRIC = CRITERIA[VALID]
ADVISED, ALWAYS = "decision tree", "always the overall best"
OVERALL = "overall"
MIN_DATA_SETS = 3
"""Minimum number of data sets for a validation that holds one out."""


@dataclass(frozen=True, kw_only=True)
class Config:
    metrics: Annotated[tuple[str, ...], Distinct(), Help("metrics with a tree each")] = (
        "validity",
        "sparsity",
        "L2",
        "MADD",
        "MD",
    )
    criterion: Annotated[
        Literal["feasible", "realistic", "valid"], Help("which counterfactuals count; CF-tabular: valid")
    ] = "feasible"
    by: Annotated[
        Literal["explainer", "strategy"],
        Help(
            "what is advised; strategy: convex optimisation, heuristic search or satisfiability, as in figure 8"
        ),
    ] = "explainer"
    depth: Annotated[int, Range(minimum=1, maximum=6), Help("maximum depth of a tree")] = 3
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
        """The features that are set, by name."""
        options = {
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
        return {name: float(value) for name, value in options.items() if value is not None}


class Advice:
    def __init__(self, config: Config) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if not finished(runs, CRITERIA[self.config.criterion]):
            return f"needs the metric {CRITERIA[self.config.criterion]}"
        explainers = {
            str(cell.labels["explainer"])
            for run in runs
            for cell in run.cells()
            if cell.done and not cell.role
        }
        return "" if len(explainers) > 1 else "needs two explainers or more that compete"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: part (tree, counted, accuracy, suggestion), metric, criterion, node, parent, branch (yes, no),
        condition, explainer (all that tie), value (a share, an accuracy, or a score up to 100), n (factuals)."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        shares: dict[str, dict[str, float]] = {}
        for metric in self.config.metrics:
            training = training_set(runs, metric, CRITERIA[self.config.criterion])
            if training is None:
                continue
            if self.config.by == "strategy":
                training = by_strategy(training)
            labels = {"metric": metric, "criterion": self.config.criterion}
            tree = fitted_tree(training.features, training.best, self.config.depth)
            rows += [{"part": TREE, **labels, **row} for row in nodes(tree, training)]
            if metric == VALID_METRIC:
                rows += [{"part": COUNTED, **labels, **row} for row in _counted(training)]
            rows += [{"part": ACCURACY, **labels, **row} for row in _held_out(training, self.config.depth)]
            shares[metric] = self._suggested(tree, training)
        rows += [{"part": SUGGESTION, "criterion": self.config.criterion, **row} for row in _scores(shares)]
        columns = [
            "part",
            "metric",
            "criterion",
            "node",
            "parent",
            "branch",
            "condition",
            "explainer",
            "value",
            "n",
        ]
        return pd.DataFrame(rows, columns=columns)

    def _suggested(self, tree: Any, training: TrainingSet) -> dict[str, float]:
        """The share of each explainer in the leaf of the setting."""
        given = self.config.setting()
        known = [column[~np.isnan(column)] for column in training.features.T]
        middle = [float(np.median(column)) if len(column) else np.nan for column in known]
        setting = [given.get(name, value) for name, value in zip(FEATURES, middle, strict=True)]
        return leaf_shares(tree, training, np.array([setting]))

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import tree_chart

        table, drawn = tidied(table), []
        for labels, rows in groups_of(table[table["part"] == TREE], ("metric", "criterion")):
            accuracy = table[(table["part"] == ACCURACY) & (table["metric"] == labels["metric"])]
            heading = f"Best {self.config.by} by {labels['metric']}, {labels['criterion']} counterfactuals"
            svg = tree_chart(_as_node(rows, 0), title=heading)
            drawn.append(Figure(heading, svg, _tested(accuracy), wide=True))
        suggestions = table[table["part"] == SUGGESTION]
        return [*drawn, *([_suggestions(suggestions)] if len(suggestions) else [])]

    def words(self, table: pd.DataFrame) -> str:
        table = tidied(table)
        if table.empty:
            return ""
        overall = table[(table["part"] == SUGGESTION) & (table["metric"] == OVERALL)]
        best = tied(overall["explainer"], overall["value"])
        others = [
            f"{join_words(names)} by {metric}"
            for metric, names in _winners(table).items()
            if not set(best) <= set(names)
        ]
        given = self.config.setting()
        where = ", ".join(f"{name} {value:g}" for name, value in given.items())
        text = f"For {where or 'a typical row of these runs'} {join_words(best)} {'is' if len(best) == 1 else 'are'}"
        text += f" advised over all metrics ({'; '.join(others)})." if others else " advised by all metrics."
        return f"{text}{_reservation(table, best)} {_validation(table)}"

    def text(self, table: pd.DataFrame) -> str:
        """The suggestions, and every tree with its accuracy, for a terminal."""
        table = tidied(table)
        parts = [_suggestions_as_text(table[table["part"] == SUGGESTION])]
        for labels, rows in groups_of(table[table["part"] == TREE], ("metric", "criterion")):
            accuracy = table[(table["part"] == ACCURACY) & (table["metric"] == labels["metric"])]
            head = f"Best {self.config.by} by {labels['metric']}, {labels['criterion']} counterfactuals"
            parts.append("\n".join([head, *_lines(_as_node(rows, 0), "  "), f"  {_tested(accuracy)}"]))
        return "\n\n".join(part for part in parts if part)


# Trees


def _held_out(training: TrainingSet, depth: int) -> Iterator[dict[str, Any]]:
    """The accuracies of the tree and of the overall best explainer, with each data set held out in turn."""
    sources = list(dict.fromkeys(training.source.tolist()))
    if len(sources) < MIN_DATA_SETS:
        return
    hits = {ADVISED: np.zeros(len(training.best)), ALWAYS: np.zeros(len(training.best))}
    for held_out in sources:
        test = training.source == held_out
        fitted = fitted_tree(training.features[~test], training.best[~test], depth)
        advised = fitted.predict(training.features[test]).astype(int)
        always = int(np.argmax(training.best[~test].sum(axis=0)))
        won = training.best[test] > 0
        hits[ADVISED][test] = won[np.arange(len(won)), advised]
        hits[ALWAYS][test] = won[:, always]
    for name, correct in hits.items():
        # Each data set counts the same, however many factuals it has.
        accuracy = float(np.mean([correct[training.source == one].mean() for one in sources]))
        yield {"explainer": name, "value": accuracy, "n": len(correct)}


def _scores(shares: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """Scores from 0 (never the best) to 100 (most often the best) by metric, and their mean."""
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


# Figures and text


def _as_node(rows: pd.DataFrame, number: int) -> Node:
    from cfbench_core.reports.charts import Node

    row = rows[rows["node"] == number].iloc[0]
    below = rows[rows["parent"] == number]
    names = row["explainer"].split(", ")
    size, wins = (
        count_of(int(row["n"]), "factual"),
        f"{'wins' if len(names) == 1 else 'each win'} {row['value']:.0%}",
    )
    leaf = (row["explainer"], size, wins)
    first = names[0] if len(names) == 1 else f"{len(names)} tie,"
    lines = (row["condition"], size, f"{first} {wins}") if row["condition"] else leaf
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
    return Figure(heading, svg, "Shares of wins in the leaf, not probabilities of finding a counterfactual.")


def _lines(node: Node, indent: str) -> Iterator[str]:
    """A tree as text: each condition on a line, with its branches below it."""
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
        return "Ties share a win. Not validated: too few data sets to hold one out."
    tree, always = both
    return (
        f"Ties share a win. Accuracy on held-out data sets: {tree:.0%} of factuals; always the overall best: "
        f"{always:.0%}."
    )


def _winners(table: pd.DataFrame) -> dict[str, list[str]]:
    """The best suggestions for each metric, all that tie."""
    rows = table[(table["part"] == SUGGESTION) & (table["metric"] != OVERALL)]
    return {
        str(metric): tied(own["explainer"], own["value"])
        for metric, own in rows.groupby("metric", sort=False)
    }


def _counted(training: TrainingSet) -> Iterator[dict[str, Any]]:
    """For each explainer the share of the factuals, of those that any explains, for which it has an answer that counts."""
    for name, own in zip(training.names, training.best.T, strict=True):
        yield {"explainer": name, "value": float((own > 0).mean()), "n": len(own)}


def _reservation(table: pd.DataFrame, best: Sequence[str]) -> str:
    """That an advised explainer has an answer that counts for fewer factuals than others."""
    rows = table[table["part"] == COUNTED]
    shares = dict(zip(rows["explainer"], rows["value"], strict=True))
    fewer = {name: shares[name] for name in best if name in shares and shares[name] < max(shares.values())}
    if not fewer:
        return ""
    own = join_words([f"{name} for {share:.0%}" for name, share in fewer.items()])
    others = f"{join_words(tied(rows['explainer'], rows['value']))} for {max(shares.values()):.0%}"
    kind = rows["criterion"].iloc[0]
    return (
        f" But it has {kind} counterfactuals for fewer of the factuals that any explainer explains than others: {own}, "
        f"{others}."
    )


def _validation(table: pd.DataFrame) -> str:
    """Whether the trees are better than always choosing the overall best explainer."""
    tested = {
        labels["metric"]: _accuracies(rows)
        for labels, rows in groups_of(table[table["part"] == ACCURACY], ("metric",))
    }
    known = {metric: both for metric, both in tested.items() if both is not None}
    if not known:
        return (
            f"With fewer than {MIN_DATA_SETS} data sets no data set can be held out: it is unknown whether the trees "
            "generalise to other data."
        )
    better = [metric for metric, (tree, always) in known.items() if tree > always]
    numbers = "; ".join(
        f"{metric} {tree:.0%} against {always:.0%}" for metric, (tree, always) in known.items()
    )
    if not better:
        verdict = "choose the overall best, not the trees"
    elif len(better) < len(known):
        verdict = f"follow the trees for {join_words(better)} only"
    else:
        verdict = "the trees may be followed"
    return (
        f"On held-out data sets the trees beat always choosing the overall best for {len(better)} of {len(known)} "
        f"metrics ({numbers}): {verdict}."
    )
