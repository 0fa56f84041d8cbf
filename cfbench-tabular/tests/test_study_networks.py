"""The networks of paper 003's study, loaded from its own files, on its own rows."""

import dataclasses

import numpy as np
import pytest

from cfbench_tabular.classifiers.base import area_under_curve, predicted_classes, probabilities
from cfbench_tabular.datasets.iris import Config as IrisConfig
from cfbench_tabular.datasets.iris import Iris
from cfbench_tabular.datasets.wine import Config as WineConfig
from cfbench_tabular.datasets.wine import Wine
from cfbench_tabular.study import StudyFiles
from cfbench_tabular.table import Column, Table

NAMES = [
    "Adult",
    "BCW",
    "BalanceScale",
    "CMSC",
    "CarEvaluation",
    "Chess",
    "DefaultOfCCC",
    "Ecoli",
    "HayesRoth",
    "Iris",
    "Lymphography",
    "MagicGT",
    "Nursery",
    "PBC",
    "SoybeanSmall",
    "StatlogGC",
    "StudentPerf",
    "TicTacToe",
    "Wine",
]
"""The 19 of 22 data sets whose rows are on hand; of ISOLET and SDD there are network and factuals alone."""


def unnamed(files):
    """A table with as many columns as the study's, for the names."""
    pd = pytest.importorskip("pandas")
    raw = pd.read_csv(files.rows, dtype=str, keep_default_na=False).drop(columns="output")
    columns = tuple(Column(f"column {name}", "categorical", ("x",)) for name in raw.columns)
    nothing = np.full(len(raw), "x", dtype=object)
    return Table(files.name, columns, {column.name: nothing for column in columns}, nothing)


@pytest.fixture(scope="module")
def problems(study):
    known = {}

    def problem(name):
        if name not in known:
            files = StudyFiles(study.data, name)
            known[name] = files, files.problem(unnamed(files))
        return known[name]

    return problem


def test_every_network_gives_the_factuals_the_class_that_the_study_filed_them_under(study):
    names = study.datasets()
    assert len(names) == 21
    explained = 0
    for name in names:
        model = study.network(name)
        for label in (0, 1):
            factuals = study.factuals(name, label)
            assert (predicted_classes(model, factuals) == label).all(), (name, label)
            explained += len(factuals)
    assert explained == 3_725  # of 3,925: there is no network for the 200 of InternetAdv


@pytest.mark.parametrize("name", NAMES)
def test_quality_of_the_networks_is_that_of_table_a1(study, problems, name):
    """On training, validation and test rows, to two decimals, which the table rounds or cuts."""
    pd = pytest.importorskip("pandas")
    published = pd.read_csv(study.reference / "paper_tableA1.csv").set_index("Dataset").loc[name]
    problem, model = problems(name)[1], study.network(name)
    assert model.weights["W1"].shape == (published["Col"], published["Neu"])
    assert len(problem.table) == published["Total"]
    share = problem.labels.mean()  # of the most frequent class, which may be the smaller part
    assert max(share, 1 - share) == pytest.approx(published["MajShare"], abs=0.0051)
    for part, short in (("train", "train"), ("validation", "valid"), ("test", "test")):
        vectors, labels = problem.sample(part)
        accuracy = (predicted_classes(model, vectors) == labels).mean()
        area = area_under_curve(labels, probabilities(model, vectors)[:, 1])
        assert accuracy == pytest.approx(published[f"Acc_{short}"], abs=0.00501), part
        assert area == pytest.approx(published[f"AUC_{short}"], abs=0.00501), part


@pytest.mark.parametrize("name", NAMES)
def test_every_factual_is_a_row_of_its_own(problems, study, name):
    files, problem = problems(name)
    rows, factuals, matched = files.factual_rows(problem, 100)
    wanted = np.concatenate([study.factuals(name, label) for label in (0, 1)])
    assert factuals == matched == len(rows) == len(wanted) == len(set(rows.tolist()))
    assert np.abs(problem.vectors[rows] - wanted).max() < 1e-6
    few, _, _ = files.factual_rows(problem, 3)
    assert few.tolist() == [*rows[:3], *rows[len(study.factuals(name, 0)) :][:3]]


@pytest.mark.parametrize("name", ["Iris", "HayesRoth", "Adult"])
def test_the_encoding_is_the_studys(study, problems, name):
    theirs, ours = study.encoding(name), problems(name)[1].encoding
    assert theirs.blocks == ours.blocks
    for part in ("mean", "scale", "low", "high"):
        assert np.allclose(getattr(theirs, part), getattr(ours, part), rtol=0, atol=1e-9)
    assert [c.levels for c in problems(name)[1].table.columns if len(c.levels) > 2] == [
        tuple(level.partition("_")[2] for level in c.levels) for c in theirs.columns if len(c.levels) > 2
    ]


def test_names_come_from_our_table_where_row_by_row_they_stand_for_the_studys(study):
    files = StudyFiles(study.data, "Iris")
    ours = Iris(IrisConfig()).load()
    problem = files.problem(ours)
    assert [column.name for column in problem.table.columns] == [column.name for column in ours.columns]
    assert set(problem.table.target) == {"setosa", "versicolor", "virginica"}
    assert problem.classes == ("not virginica", "virginica")
    assert (problem.labels == (problem.table.target == "virginica")).all()
    shuffled = dataclasses.replace(ours, target=np.random.default_rng(0).permutation(ours.target))
    assert set(files.problem(shuffled).table.target) == {"0", "1", "3"}


@pytest.mark.parametrize(("name", "dataset"), [("Iris", Iris(IrisConfig())), ("Wine", Wine(WineConfig()))])
def test_our_copies_of_iris_and_wine_have_the_studys_values(study, name, dataset):
    """Column by column, sorted. Single values of Iris differ between UCI's copy and the corrected one."""
    pd = pytest.importorskip("pandas")
    raw = pd.read_csv(study.data / "datasets" / f"{name}.csv.gz")
    table = dataset.load()
    ours = np.column_stack([table.values[column.name] for column in table.columns])
    theirs = raw.drop(columns="output").to_numpy(float)
    assert ours.shape == theirs.shape
    assert (np.abs(np.sort(ours, axis=0) - np.sort(theirs, axis=0)) > 1e-9).sum() <= 40
    majority = (table.target == table.classes()[1]).sum()
    assert majority == raw["output"].value_counts().max()
