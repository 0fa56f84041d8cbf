import numpy as np
import pytest
from safetensors.numpy import save_file

from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.base import area_under_curve, predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, Config, from_weights, grid_sizes, read_weights
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.testing import example_data, fitted

WEIGHTS = {
    "W1": np.array([[1.0, -1.0], [0.0, 2.0]]),
    "b1": np.array([0.0, 1.0]),
    "W2": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "b2": np.array([0.5, 0.0]),
}


def test_probabilities_by_hand():
    model = from_weights(WEIGHTS)
    # x = (3, 1): hidden = relu(3, -3 + 2 + 1) = (3, 0); outputs = (0 + 0.5, 3)
    assert model.predict_proba(np.array([[3.0, 1.0]]))[0, 1] == pytest.approx(1 / (1 + np.exp(-2.5)))


def test_training_learns_and_stops_before_the_last_epoch():
    reported = []
    data = example_data()
    model = MLP(Config(epochs=500, patience=5))
    model.fit(data, np.random.default_rng(0), lambda done, total: reported.append((done, total)))
    vectors, labels = data.sample("test")
    assert (predicted_classes(model, vectors) == labels).mean() > 0.85
    assert reported[-1][0] < 500


def test_it_keeps_the_best_epoch_of_the_validation_rows():
    data = example_data()
    vectors, labels = data.sample("validation")

    def loss(model):
        return -np.log(model.predict_proba(vectors)[np.arange(len(labels)), labels]).mean()

    losses = [loss(fitted(MLP(Config(epochs=epochs, patience=1000)), data)) for epochs in (1, 5, 30, 60)]
    assert losses == sorted(losses, reverse=True)


def test_the_sizes_of_the_grid_are_those_of_table_a1():
    """21 networks of CF-tabular, by encoded columns and neurons; each is in the grid of its columns."""
    published = {107: 215, 32: 65, 20: 16, 18: 22, 21: 17, 40: 64, 90: 72, 7: 15, 15: 31, 617: 247, 4: 3}
    published |= {50: 40, 10: 12, 26: 10, 48: 19, 59: 119, 43: 17, 27: 11, 13: 5, 1558: 1246}
    assert all(neurons in grid_sizes(columns) for columns, neurons in published.items())
    assert 23 in grid_sizes(59)
    assert grid_sizes(1) == [1, 2, 3]


def test_the_grid_takes_the_best_area_of_the_validation_rows(monkeypatch):
    monkeypatch.setattr("cfbench_tabular.classifiers.mlp.EPOCHS", (2, 20))
    monkeypatch.setattr("cfbench_tabular.classifiers.mlp.RATES", (0.01, 1e-6))
    data = example_data()
    vectors, labels = data.sample("validation")
    model = fitted(MLP(Config(hidden="grid")), data)
    area = area_under_curve(labels, model.predict_proba(vectors)[:, 1])
    assert model.weights["W1"].shape[1] in grid_sizes(data.encoding.width)
    lone = fitted(MLP(Config(hidden=6, learning_rate=1e-6, epochs=2)), data)
    assert area >= area_under_curve(labels, lone.predict_proba(vectors)[:, 1])
    assert area > 0.9


def test_without_validation_rows_it_watches_the_training_rows():
    table = example_data().table
    data = PreparedDataset.make(table, 0.0, 0.2, np.random.default_rng(0))
    vectors, labels = data.sample("test")
    assert (predicted_classes(fitted(MLP(Config()), data), vectors) == labels).mean() > 0.8


def test_the_area_under_the_curve_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(0)
    labels, scores = draw.integers(2, size=60), draw.integers(9, size=60) / 9
    assert area_under_curve(labels, scores) == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    assert np.isnan(area_under_curve(np.ones(3, dtype=int), np.arange(3.0)))


def test_weights_from_files_are_taken_as_they_are(tmp_path):
    data = example_data()
    trained = fitted(MLP(Config(hidden=4)), data)
    np.savez(tmp_path / "net.npz", **trained.state())
    save_file(
        {name: np.ascontiguousarray(array) for name, array in trained.state().items()},
        tmp_path / "net.safetensors",
    )
    for file in ("net.npz", "net.safetensors"):
        model = fitted(MLP(Config(weights=str(tmp_path / file))), data)
        assert np.array_equal(model.predict_proba(data.vectors), trained.predict_proba(data.vectors))


def test_weights_for_another_number_of_columns_are_refused(tmp_path):
    np.savez(tmp_path / "net.npz", **WEIGHTS)
    with pytest.raises(UserError, match=r"is for 2 encoded columns, but example has 7"):
        fitted(MLP(Config(weights=str(tmp_path / "net.npz"))), example_data())


def test_weights_that_do_not_fit_together_are_refused(tmp_path):
    np.savez(tmp_path / "net.npz", **{**WEIGHTS, "b1": np.zeros(5)})
    with pytest.raises(UserError, match="shapes do not match"):
        fitted(MLP(Config(weights=str(tmp_path / "net.npz"))), example_data())


def test_a_file_without_a_matrix_is_refused(tmp_path):
    np.savez(tmp_path / "net.npz", W1=WEIGHTS["W1"])
    with pytest.raises(UserError, match="lacks b1, W2, b2"):
        read_weights(tmp_path / "net.npz")


def test_a_file_with_pickled_objects_is_not_opened(tmp_path):
    np.savez(tmp_path / "net.npz", **{**WEIGHTS, "W1": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_weights(tmp_path / "net.npz")
