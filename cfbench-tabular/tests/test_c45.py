"""C4.5. The trees in the data were printed by YaDT 2.1.0: dTcmd -fd x.data -fm x.names -sep ; -t x.txt"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from cfbench_tabular.explainers.c45 import DEVIATE, Node, added_errors, fit, leaf_of, predict


def leaves(node):
    return [leaf for child in node.children for leaf in leaves(child)] if node.children else [node]


def nodes(node):
    return [node, *(below for child in node.children for below in nodes(child))]


def same(one, other):
    return (
        (one.column, one.threshold, one.label) == (other.column, other.threshold, other.label)
        and list(one.counts) == list(other.counts)
        and len(one.children) == len(other.children)
        and all(map(same, one.children, other.children))
    )


@dataclass(frozen=True)
class Data:
    """A training set: names of the columns, the last of them the class, a text for each cell; and the tree of YaDT."""

    names: list[str]
    cells: list[list[str]]
    numbers: str
    tree: str

    def fitted(self):
        levels, table = [], []
        for name, *column in zip(self.names, *self.cells, strict=True):
            known = [] if name in self.numbers.split() else sorted(set(column))
            levels.append(known)
            table.append([known.index(cell) if known else float(cell) for cell in column])
        rows = np.array(table[:-1], dtype=float).T
        return fit(rows, np.array(table[-1]), [len(known) for known in levels[:-1]]), levels

    def printed(self):
        tree, levels = self.fitted()
        return "\n".join(self.lines(tree, levels, ""))

    def lines(self, node, levels, indent):
        name, known = self.names[node.column], levels[node.column]
        integer = all("." not in row[node.column] for row in self.cells)
        for place, child in enumerate(node.children):
            value = "" if known else f"{node.threshold:.0f}" if integer else f"{node.threshold:f}"
            test = f"= {known[place]}" if known else f"{('<=', '>')[place]} {value} "
            below = f"{indent}{name} {test}:"
            if child.column is None:
                yield f"{below} {levels[-1][child.label]} {_numbers(child)}"
            else:
                yield below
                yield from self.lines(child, levels, indent + "|   ")


def _numbers(leaf):
    rows = int(leaf.counts.sum())
    wrong = rows - int(leaf.counts[leaf.label])
    return f"({rows}.0/{wrong + added_errors(rows, wrong):.1f})" if rows else "(0.0)"


def table(names, text, numbers, tree):
    return Data(names.split(), [row.split(";") for row in text.split()], numbers, tree)


GOLF = table(
    "outlook temperature humidity windy class",
    """sunny;75;70;true;Play sunny;80;90;true;Dont sunny;85;85;false;Dont sunny;72;95;false;Dont
    sunny;69;70;false;Play overcast;72;90;true;Play overcast;83;78;false;Play overcast;64;65;true;Play
    overcast;81;75;false;Play rain;71;80;true;Dont rain;65;70;true;Dont rain;75;80;false;Play
    rain;68;80;false;Play rain;70;96;false;Play""",
    numbers="temperature humidity",
    tree="""
outlook = overcast: Play (4.0/1.2)
outlook = rain:
|   windy = false: Play (3.0/1.1)
|   windy = true: Dont (2.0/1.0)
outlook = sunny:
|   humidity <= 75 : Play (2.0/1.0)
|   humidity > 75 : Dont (3.0/1.1)""",
)

EMPTY_BRANCH = table(
    "x y z class",
    """8;c;a;no 7;b;c;yes 4;a;b;no 8;c;b;no 8;c;b;no 8;c;d;no 0;c;c;no 4;b;b;no 5;c;d;no 2;c;d;no 3;b;b;no
    5;c;a;no 7;b;a;no 5;a;a;yes 1;b;c;yes 6;b;c;yes 7;a;c;yes 1;c;d;no 4;b;d;yes 3;c;c;no 8;a;c;yes 0;b;a;no
    4;a;b;no""",
    numbers="x",
    tree="""
y = a:
|   z = a: yes (1.0/0.8)
|   z = b: no (2.0/1.0)
|   z = c: yes (2.0/1.0)
|   z = d: yes (0.0)
y = b:
|   z = a: no (2.0/1.0)
|   z = b: no (2.0/1.0)
|   z = c: yes (3.0/1.1)
|   z = d: yes (1.0/0.8)
y = c: no (10.0/1.3)""",
)

MANY_LEVELS = table(
    "x y z class",
    """3.0;a;g;no 8.0;a;h;yes 7.0;a;h;yes 2.0;c;b;yes 4.0;c;i;no 6.0;c;b;yes 7.0;c;e;yes 2.0;a;f;no 5.0;b;g;yes
    7.0;d;h;yes 5.0;c;f;yes 8.0;c;d;yes 3.0;a;e;no 5.0;c;h;yes 0.0;c;e;no 2.0;d;g;no 6.0;a;c;no 0.0;c;a;no
    7.0;d;b;yes 3.0;b;a;no 6.0;a;d;yes 7.0;a;c;no 3.0;b;f;yes 2.0;c;h;no 0.0;d;g;no""",
    numbers="x",
    tree="""
z = a: no (2.0/1.0)
z = b: yes (3.0/1.1)
z = c: no (2.0/1.0)
z = d: yes (2.0/1.0)
z = e: no (3.0/2.1)
z = f: yes (3.0/2.1)
z = g: no (4.0/2.2)
z = h: yes (5.0/2.3)
z = i: no (1.0/0.8)""",
)

SINGLE_PRECISION = table(
    "x y z w class",
    """a;e;2;a;yes d;c;3;a;no b;b;2;b;yes c;a;1;a;no d;b;0;a;yes d;a;1;a;yes e;e;0;b;yes c;d;1;b;no
    a;b;3;a;yes e;e;0;b;yes a;b;2;a;yes d;a;2;a;no d;e;3;b;no a;d;3;b;yes b;d;0;b;no d;a;3;b;no
    a;a;2;b;yes b;e;2;a;yes e;b;0;a;yes e;e;1;a;yes d;b;2;a;no a;c;1;b;no e;e;3;b;no e;a;3;a;no""",
    numbers="z",
    tree="""
y = a: no (6.0/3.3)
y = b: yes (6.0/2.3)
y = c: no (2.0/1.0)
y = d: no (3.0/2.1)
y = e:
|   z <= 2 : yes (5.0/1.2)
|   z > 2 : no (2.0/1.0)""",
)

MIDDLE = table(
    "x y class",
    """-0.04;-0.17;yes 0.06;-0.04;no 0.04;-0.06;no 0.05;-0.08;no 0.05;-0.03;no 0.26;0.18;yes -0.05;-0.1;yes
    -0.06;0.12;no -0.1;-0.2;yes 0.07;-0.04;no 0.14;0.02;yes -0.01;0.07;no -0.1;0.09;no -0.1;0.1;no 0.08;-0.04;no
    0.09;-0.06;no 0.07;0.1;yes -0.08;-0.02;yes 0.03;-0.15;no 0.01;-0.14;no 0.03;-0.11;no 0.1;0.06;yes
    0.03;0.02;yes 0.08;0.08;yes 0.01;-0.05;no 0.03;0.02;yes 0.08;0.08;yes""",
    numbers="x y",
    tree="""
y <= -0.030000 :
|   x <= -0.040000 : yes (3.0/1.1)
|   x > -0.040000 : no (11.0/1.3)
y > -0.030000 :
|   x <= 0.010000 : no (5.0/2.3)
|   x > 0.010000 : yes (8.0/1.3)""",
)


def noisy():
    """600 rows, some of them with the other class."""
    cells = []
    for i in range(600):
        x, y, z = i * 37 % 101, i * 611 % 97 / 4, "abcd"[i * 7919 % 1009 % 4]
        positive = (x > 40 and y > 9.1) or (z == "d" and x > 20)
        cells.append([str(x), str(y), z, "yes" if positive != (i * i % 19 == 5) else "no"])
    return Data(
        ["x", "y", "z", "class"],
        cells,
        numbers="x y",
        tree="""
x <= 40 :
|   z = a: no (58.0/6.1)
|   z = b: no (59.0/9.5)
|   z = c: no (61.0/12.7)
|   z = d:
|   |   x <= 20 : no (35.0/2.6)
|   |   x > 20 : yes (31.0/7.1)
x > 40 :
|   y <= 9.000000 :
|   |   z = a: no (35.0/7.2)
|   |   z = b: no (35.0/6.0)
|   |   z = c: no (37.0/4.9)
|   |   z = d: yes (28.0/4.9)
|   y > 9.000000 : yes (221.0/25.8)""",
    )


def test_golf():
    """Quinlan's example: play when it is overcast, in the rain without wind, and in the sun when it is not humid."""
    tree, levels = GOLF.fitted()
    assert levels[0] == ["overcast", "rain", "sunny"]
    overcast, rain, sunny = tree.children
    assert tree.column == 0 and tree.threshold is None
    assert overcast.column is None and overcast.label == 1 and list(overcast.counts) == [0, 4]
    assert rain.column == 3 and [child.label for child in rain.children] == [1, 0]
    assert sunny.column == 2 and sunny.threshold == 75.0
    assert [list(child.counts) for child in sunny.children] == [[0, 2], [3, 0]]


@pytest.mark.parametrize("data", [GOLF, EMPTY_BRANCH, MANY_LEVELS, SINGLE_PRECISION, MIDDLE, noisy()])
def test_the_tree_is_that_of_yadt(data):
    """Among others: many levels count in the average gain; the middle of a cut (-0.01 to 0.03) is a training value.

    In SINGLE_PRECISION, x and y gain the same; rounding takes y, where double precision would take the first.
    """
    assert data.printed() == data.tree.strip()


def blocks(*parts):
    """Equal rows: for each part its values, its class and how many they are."""
    values, classes, counts = zip(*parts, strict=True)
    return np.repeat(np.array(values, dtype=float), counts, axis=0), np.repeat(classes, counts)


def test_a_split_without_fewer_training_errors_is_undone():
    """Also where pruning alone would keep it: 54.5 errors are predicted for the leaf, 54.3 for the branches."""
    assert 49 + added_errors(1180, 49) > 49 + added_errors(100, 49) + added_errors(1080, 0) + 0.1
    rows, labels = blocks(([0], 0, 51), ([0], 1, 49), ([1], 0, 1080))
    assert fit(rows, labels, [2]).column is None


def test_the_training_errors_are_those_before_pruning():
    """The subtree at 0 makes one error less until it is pruned; so the split above it remains (in YaDT too)."""
    mixed = [([0, 0], 0, 50), ([0, 0], 1, 47), ([0, 1], 0, 1), ([0, 1], 1, 2)]
    rows, labels = blocks(*mixed, ([1, 0], 0, 540), ([1, 1], 0, 540))
    tree = fit(rows, labels, [2, 2])
    assert tree.column == 0 and [child.column for child in tree.children] == [None, None]
    assert [list(child.counts) for child in tree.children] == [[51, 49], [1080, 0]]


@pytest.mark.parametrize(("positives", "threshold"), [(30, 29.0), (25, 24.0), (20, 24.0)])
def test_branches_of_numbers_have_at_least_25_of_many_rows(positives, threshold):
    values = np.arange(1200.0)
    tree = fit(values[:, None], (values < positives).astype(int), [0])
    assert tree.threshold == threshold


def bits(labels):
    return -sum(count / len(labels) * log2(count / len(labels)) for count in Counter(labels).values())


def most_frequent(labels):
    return min(set(labels), key=lambda label: (-labels.count(label), label))


class Literal:
    """C4.5 by loops and in double precision, with a tolerance for ties; members are positions of rows."""

    def __init__(self, rows, labels, levels):
        self.rows, self.labels, self.levels = rows.tolist(), labels.tolist(), levels
        self.classes = len(set(self.labels))

    def branches(self, members, column, threshold):
        if threshold is None:
            return [[m for m in members if self.rows[m][column] == at] for at in range(self.levels[column])]
        low = [m for m in members if self.rows[m][column] <= threshold]
        return [low, [m for m in members if m not in low]]

    def measured(self, members, column, threshold):
        labels = [self.labels[m] for m in members]
        branches = self.branches(members, column, threshold)
        left = sum(len(b) / len(members) * bits([self.labels[m] for m in b]) for b in branches if b)
        return bits(labels) - left, bits([at for at, b in enumerate(branches) for _ in b])

    def candidate(self, members, column):
        """(gain, information, threshold), None without a split."""
        n = len(members)
        if self.levels[column]:
            sizes = [len(b) for b in self.branches(members, column, None)]
            gain, information = self.measured(members, column, None)
            return (gain, information, None) if sum(size >= 2 for size in sizes) >= 2 else None
        least = min(max(2, n / (10 * self.classes)), 25)
        values = sorted({self.rows[m][column] for m in members})
        cuts = []
        for low, high in pairwise(values):
            below = sum(self.rows[m][column] <= low for m in members)
            if below >= least and n - below >= least:
                middle = low + (high - low) / 2
                threshold = max(row[column] for row in self.rows if row[column] <= middle)
                cuts.append((*self.measured(members, column, threshold), threshold))
        if not cuts:
            return None
        top = max(gain for gain, _, _ in cuts)
        gain, information, threshold = next(cut for cut in cuts if cut[0] > top - 1e-9)
        gain -= log2(len(cuts)) / n
        return (gain, information, threshold) if gain > 1e-9 else None

    def best(self, members):
        found = {}
        for column in range(len(self.levels)):
            if candidate := self.candidate(members, column):
                found[column] = candidate
        if not found:
            return None
        average = sum(gain for gain, _, _ in found.values()) / len(found)
        ratios = {c: gain / info for c, (gain, info, _) in found.items() if gain >= average - 1e-3}
        column = next(c for c, ratio in ratios.items() if ratio > max(ratios.values()) - 1e-9)
        return column, found[column][2]

    def grown(self, members, label=0):
        labels = [self.labels[m] for m in members]
        label = most_frequent(labels) if labels else label
        counts = np.array([labels.count(k) for k in range(max(self.labels) + 1)])
        if len(set(labels)) < 2 or len(labels) < 4 or not (split := self.best(members)):
            return Node(counts, label)
        column, threshold = split
        branches = self.branches(members, column, threshold)
        node = Node(counts, label, column, threshold, tuple(self.grown(b, label) for b in branches))
        wrong = sum(len(labels_of(leaf)) - labels_of(leaf).count(leaf.label) for leaf in leaves(node))
        return Node(counts, label) if wrong == len(labels) - counts[label] else node


def labels_of(node):
    return [label for label, count in enumerate(node.counts) for _ in range(count)]


def expected_errors(node):
    if node.children:
        return sum(map(expected_errors, node.children))
    n = int(node.counts.sum())
    wrong = n - int(node.counts[node.label])
    return wrong + added_errors(n, wrong)


def pruned(node):
    if not node.children:
        return node
    leaf = Node(node.counts, node.label)
    subtree = Node(node.counts, node.label, node.column, node.threshold, tuple(map(pruned, node.children)))
    return leaf if expected_errors(leaf) <= expected_errors(subtree) + 0.1 else subtree


def example(seed, classes=2):
    """Rows with few distinct values, repeated, and labels that depend on them."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(4, 150))
    levels = [0, 4, 0, 2, 0][: draw.integers(1, 6)]
    rows = np.column_stack(
        [draw.integers(level, size=n) if level else draw.normal(size=n).round(1) for level in levels]
    ).astype(float)
    score = rows @ draw.normal(size=len(levels)) + 2 * (rows[:, 0] > 0) * (rows[:, -1] > 0.5)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    repeated = draw.integers(0, n, size=n)
    return rows[repeated], labels[repeated], levels


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_agree_with_all_splits_in_loops(classes):
    sizes = []
    for seed in range(40):
        rows, labels, levels = example(seed, classes)
        tree = fit(rows, labels, levels, classes=int(labels.max()) + 1)
        literal = Literal(rows, labels, levels)
        assert same(tree, pruned(literal.grown(list(range(len(rows)))))), seed
        sizes.append(len(leaves(tree)))
    assert np.mean(np.array(sizes) > 2) > 0.5


@pytest.mark.parametrize("rows", [1, 2, 5, 30, 1000])
def test_without_errors_the_rate_makes_none_in_a_quarter_of_the_samples(rows):
    rate = added_errors(rows, 0) / rows
    assert binom.pmf(0, rows, rate) == pytest.approx(0.25)


@pytest.mark.parametrize(("rows", "errors"), [(2, 1), (10, 3), (40, 1), (500, 200)])
def test_with_errors_the_rate_is_a_deviate_above(rows, errors):
    """The rate p > f with f = p - DEVIATE standard errors of p, where f counts half an error more."""
    observed = (errors + 0.5) / rows

    def excess(rate):
        return rate - observed - DEVIATE * (rate * (1 - rate) / rows) ** 0.5

    rate = (errors + added_errors(rows, errors)) / rows
    assert rate == pytest.approx(brentq(excess, observed, 1 - 1e-12), rel=1e-9)


@st.composite
def samples(draw):
    n = draw(st.integers(1, 60))
    levels = draw(st.lists(st.sampled_from([0, 0, 2, 3]), min_size=1, max_size=4))
    cells = [st.integers(0, level - 1) if level else st.integers(-3, 6) for level in levels]
    rows = draw(st.lists(st.tuples(*cells), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(rows, dtype=float), np.array(labels), levels


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(samples(), st.randoms(use_true_random=False))
def test_properties_of_any_tree(sample, random):
    rows, labels, levels = sample
    tree = fit(rows, labels, levels)
    reached = {id(leaf): [0, 0] for leaf in leaves(tree)}
    for row, label in zip(rows, labels, strict=True):
        reached[id(leaf_of(tree, row))][label] += 1
    assert all(list(leaf.counts) == reached[id(leaf)] for leaf in leaves(tree))
    assert predict(tree, rows).tolist() == [leaf_of(tree, row).label for row in rows]
    for node in nodes(tree):
        assert node.counts[node.label] == node.counts.max()
        if node.column is not None:
            assert sum(child.counts for child in node.children).tolist() == node.counts.tolist()
            assert sum(child.counts.sum() >= 2 for child in node.children) >= 2
            assert len(node.children) == (levels[node.column] or 2)
            assert (node.threshold is None) == bool(levels[node.column])
            if node.threshold is not None:
                assert node.threshold in rows[:, node.column]
    order = list(range(len(rows)))
    random.shuffle(order)
    assert same(tree, fit(rows[order], labels[order], levels))


def test_classes_without_rows_change_nothing():
    """Only the number of classes that occur counts in the minimum size of a branch."""
    for seed in range(20):
        rows, labels, levels = example(seed)
        one, other = fit(rows, labels, levels), fit(rows, 2 * labels, levels, classes=4)
        splits = [[(node.column, node.threshold) for node in nodes(tree)] for tree in (one, other)]
        assert splits[0] == splits[1]
        assert [2 * node.label for node in nodes(one)] == [node.label for node in nodes(other)]


def test_a_single_class_is_a_leaf():
    tree = fit(np.arange(20.0)[:, None], np.ones(20, dtype=int), [0])
    assert tree.column is None and tree.label == 1 and list(tree.counts) == [0, 20]


def test_a_level_that_no_row_has_predicts_the_class_of_its_parent():
    rows, labels = np.repeat([[0.0], [1.0]], [10, 12], axis=0), np.repeat([0, 1], [10, 12])
    tree = fit(rows, labels, [3])
    assert [list(child.counts) for child in tree.children] == [[10, 0], [0, 12], [0, 0]]
    assert predict(tree, np.array([[0.0], [1.0], [2.0]])).tolist() == [0, 1, 1]


def test_equal_columns_and_classes_fall_to_the_first():
    rows, labels = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0), np.repeat([0, 1], 10)
    assert fit(rows, labels, [0, 0]).column == 0
    assert fit(rows, labels, [2, 2]).column == 0
    assert fit(np.zeros((20, 1)), labels, [0]).label == 0
