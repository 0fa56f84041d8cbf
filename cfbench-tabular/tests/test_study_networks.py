"""The networks of paper 003's study, loaded from its own files."""

import json

import numpy as np
import pytest

from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.datasets.iris import Config as IrisConfig
from cfbench_tabular.datasets.iris import Iris
from cfbench_tabular.datasets.wine import Config as WineConfig
from cfbench_tabular.datasets.wine import Wine
from cfbench_tabular.table import Column, Table

NUMERIC = ("BCW", "CMSC", "Ecoli", "Iris", "MagicGT", "PBC", "Wine")


def test_every_network_gives_the_factuals_the_class_that_the_study_filed_them_under(study):
    names = study.datasets()
    assert len(names) == 21
    for name in names:
        model = study.network(name)
        for label in (0, 1):
            assert (predicted_classes(model, study.factuals(name, label)) == label).all(), (name, label)


@pytest.mark.parametrize("name", NUMERIC)
def test_quality_on_the_studys_test_rows_is_that_of_its_table_a1(study, name):
    """It is so only if our rule for the majority class, ties included, is the study's."""
    pd, metrics = pytest.importorskip("pandas"), pytest.importorskip("sklearn.metrics")
    raw = pd.read_csv(study.data / "datasets" / f"{name}.csv.gz")
    columns = tuple(Column(column) for column in raw.columns if column != "output")
    values = {column.name: raw[column.name].to_numpy(float) for column in columns}
    table = Table(name, columns, values, raw["output"].astype(str).to_numpy(object))
    scaler = json.loads((study.data / "scalers" / f"{name}.json").read_text())
    rows = np.load(study.data / "splits" / f"{name}_test.npy", allow_pickle=False)
    vectors = ((raw.drop(columns="output").to_numpy(float) - scaler["mean"]) / scaler["scale"])[rows]
    labels = (table.target == table.classes()[1])[rows]
    model = study.network(name)
    published = pd.read_csv(study.reference / "paper_tableA1.csv").set_index("Dataset").loc[name]
    accuracy = (predicted_classes(model, vectors) == labels).mean()
    area = metrics.roc_auc_score(labels, probabilities(model, vectors)[:, 1])
    assert accuracy == pytest.approx(published["Acc_test"], abs=0.00501)
    assert area == pytest.approx(published["AUC_test"], abs=0.00501)


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
