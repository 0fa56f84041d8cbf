"""Models of the user's own: ready made, of raw columns, scikit-learn's by name."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_core.lifecycle import code
from cfbench_tabular.classifiers.adapting import adapted, raw_columns
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.scikit_learn import Config, ScikitLearn
from cfbench_tabular.testing import example_data, fitted

CONFIG = {
    "suite": "tabular",
    "data": ["iris"],
    "explainers": ["nearest-enemy"],
    "metrics": ["validity"],
    "protocol": {"factuals": 4},
    "executor": "inline",
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """``mine(text)``: the module ``mine`` in the working directory."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))

    def write(text):
        (tmp_path / "mine.py").write_text(textwrap.dedent(text))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)

    return write


def test_a_pretrained_model_needs_only_predict_proba(tmp_path, mine):
    mine(
        """
        import numpy as np
        class Ready:
            def __init__(self, config): ...
            def predict_proba(self, vectors):
                one = 1 / (1 + np.exp(-4 * vectors[:, 2]))
                return np.stack([1 - one, one], axis=1)
        """
    )
    run = cfbench_core.run({**CONFIG, "classifiers": [{"import": "mine:Ready"}]}, out=tmp_path / "run")
    assert run.exit_code == 0
    assert (run.scores["value"] == 1.0).all()


def test_a_classifier_that_predicts_one_class_is_reported(tmp_path, monkeypatch):
    """That explainers which start from rows of the other class find nothing is a result of the classifier."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    study = {
        "suite": "tabular",
        "data": "iris",
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy", "growing-spheres"],
        "protocol": {"factuals": 2, "decision_threshold": 0.9999999},
        "metrics": ["validity"],
        "executor": "inline",
    }
    run = cfbench_core.run(study, out=tmp_path / "run")
    assert run.exit_code == 0 and (run.scores["value"] == 0).all()
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "the classifier predicts one class" in report and "for every row" in report


def test_a_model_of_raw_columns_receives_the_values_of_the_table(tmp_path, mine):
    mine(
        """
        import numpy as np
        class LongPetals:
            columns = "raw"
            def __init__(self, config): ...
            def predict_proba(self, frame):
                assert list(frame.columns)[2] == "petal length (cm)"
                assert frame["petal length (cm)"].between(-5, 15).all()
                one = (frame["petal length (cm)"] > 4.8).to_numpy(float)
                return np.stack([1 - one, one], axis=1)
            def log_odds_gradient(self, vectors): ...
        """
    )
    config = {
        **CONFIG,
        "classifiers": [{"import": "mine:LongPetals"}],
        "explainers": ["nearest-enemy", "cadex"],
    }
    plan = api.plan(config)
    assert [cell.skipped != "" for cell in plan.cells] == [False, True], "raw columns have no gradient"
    run = cfbench_core.run(config, out=tmp_path / "run")
    assert run.exit_code == 0
    assert (run.scores["value"] == 1.0).all()
    petals = run.explanations.query("column == 'petal length (cm)'")
    assert ((petals["original"].astype(float) > 4.8) != (petals["value"].astype(float) > 4.8)).all()


def test_categories_come_as_text_and_a_vector_between_levels_as_the_nearest():
    data = example_data()
    frame = raw_columns(data.encoding, data.vectors)
    assert frame["colour"].tolist() == data.table.values["colour"].tolist()
    assert np.allclose(frame["length"], data.table.values["length"], rtol=0, atol=1e-9)
    between = data.vectors[:1].copy()
    between[0, data.encoding.groups[0]] = [0.2, 0.5, 0.3]
    assert raw_columns(data.encoding, between)["colour"].tolist() == ["green"]


def test_what_has_all_methods_is_left_as_it_is():
    model = ScikitLearn(Config())
    assert adapted(model, example_data().encoding) is model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "class Half:\n    def predict_proba(self, v): ...\n    def fit(self, p, g, r): ...",
            "a classifier with fit also needs state and load_state",
        ),
        ("class Half:\n    def fit(self, p, g, r): ...", "a classifier needs predict_proba"),
        ("class A:\n    def predict_proba(self, v): ...\nHalf = A()", "name: scikit-learn, factory"),
    ],
)
def test_what_cannot_be_used_is_reported_with_what_can(mine, text, message):
    mine(text)
    with pytest.raises(UserError, match=message):
        api.plan({**CONFIG, "classifiers": [{"import": "mine:Half"}]})


# scikit-learn


@pytest.mark.parametrize("columns", ["encoded", "raw"])
def test_an_estimator_by_name_learns_as_scikit_learn_does(columns):
    neighbors = pytest.importorskip("sklearn.neighbors")
    data = example_data(categories=False)
    model = fitted(
        ScikitLearn(
            Config(
                factory="sklearn.neighbors:KNeighborsClassifier", options={"n_neighbors": 3}, columns=columns
            )
        ),
        data,
    )
    vectors, labels = data.sample("train")
    seen = vectors if columns == "encoded" else raw_columns(data.encoding, vectors)
    test = data.sample("test")[0]
    queries = test if columns == "encoded" else raw_columns(data.encoding, test)
    theirs = neighbors.KNeighborsClassifier(3).fit(seen, labels)
    assert np.allclose(model.predict_proba(test), theirs.predict_proba(queries), rtol=0, atol=1e-12)


@pytest.mark.parametrize("columns", ["encoded", "raw"])
def test_the_stored_state_restores_the_same_model(columns, mine):
    mine(
        """
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        def pipeline(raw, trees):
            if not raw:
                return make_pipeline(RandomForestClassifier(trees))
            text = make_column_selector(dtype_exclude="number")
            encode = make_column_transformer((OneHotEncoder(), text), remainder="passthrough")
            return make_pipeline(encode, RandomForestClassifier(trees))
        """
    )
    data, raw = example_data(), columns == "raw"
    config = Config(factory="mine:pipeline", options={"raw": raw, "trees": 5}, columns=columns)
    model, copy = fitted(ScikitLearn(config), data), ScikitLearn(config)
    copy.load_state({name: np.array(array) for name, array in model.state().items()}, data)
    vectors, labels = data.sample("test")
    assert np.array_equal(model.predict_proba(vectors), copy.predict_proba(vectors))
    assert (predicted_classes(model, vectors) == labels).mean() > 0.8


def test_a_pretrained_pipeline_with_three_classes_predicts_the_target(tmp_path, mine):
    mine(
        """
        import numpy as np
        from sklearn.datasets import load_iris
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        bunch = load_iris(as_frame=True)
        names = np.array(bunch.target_names)[bunch.target]
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(bunch.data, names)
        """
    )
    ready = {"name": "scikit-learn", "factory": "mine:model", "train": False, "columns": "raw"}
    run = cfbench_core.run({**CONFIG, "classifiers": [ready]}, out=tmp_path / "run")
    assert run.exit_code == 0
    quality = run.quality.set_index("metric")["value"]
    assert quality["AUC"] > 0.97
    assert set(run.explanations["wanted_class"]) == {"virginica", "not virginica"}


def test_editing_the_module_of_a_factory_makes_the_model_stale(tmp_path, mine):
    text = "from sklearn.naive_bayes import GaussianNB\ndef make():\n    return GaussianNB()\n"
    config = {**CONFIG, "classifiers": [{"name": "scikit-learn", "factory": "mine:make"}]}

    def key():
        for cached in (code.closure, code._module, code._file_of):  # each run is a process of its own
            cached.cache_clear()
        return api.plan(config).cells[0].stages["model"].key

    mine(text)
    first = key()
    mine(text + "# a comment\n")
    assert key() == first
    mine(text.replace("GaussianNB()", "GaussianNB(var_smoothing=1e-8)"))
    assert key() != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factory": "nowhere.at_all:thing"}, "no module 'nowhere' in the folder of the configuration"),
        ({"factory": "sklearn.naive_bayes:GausianNB"}, "Did you mean 'GaussianNB'"),
        ({"factory": "sklearn.svm"}, "must be 'package.module:name'"),
        ({"factory": "sklearn.svm:LinearSVC"}, "LinearSVC has no predict_proba"),
        (
            {"factory": "numpy:save"},
            "is in an installed package; it must be code of your own, or a class of sklearn",
        ),
        ({"factory": "sklearn.utils:shuffle"}, "is not a class of that library"),
        ({"factory": "sklearn.utils:Bunch"}, "is not an estimator, it has no fit"),
        (
            {"factory": "subprocess:check_output", "options": {"args": "id", "shell": True}},
            "standard library",
        ),
        ({"factory": "cfbench_core.files:write_atomically"}, "is in an installed package"),
        ({"factory": "os:system"}, "is in Python's standard library"),
    ],
)
def test_an_invalid_factory_is_reported(options, message):
    with pytest.raises(UserError, match=message):
        fitted(ScikitLearn(Config(**options)), example_data())


def test_classes_that_are_not_the_tables_are_reported(mine):
    mine(
        """
        from sklearn.naive_bayes import GaussianNB
        model = GaussianNB().fit([[0.0] * 7, [1.0] * 7], ["cat", "dog"])
        """
    )
    with pytest.raises(UserError, match=r"has the classes cat, dog; it must have '(small|large)'"):
        fitted(ScikitLearn(Config(factory="mine:model", train=False)), example_data())


@pytest.mark.parametrize(
    "factory",
    [
        "sklearn.ensemble:GradientBoostingClassifier",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "sklearn.ensemble:ExtraTreesClassifier",
        "sklearn.gaussian_process:GaussianProcessClassifier",
        "sklearn.neighbors:KNeighborsClassifier",
        "sklearn.svm:SVC",
        "sklearn.tree:DecisionTreeClassifier",
    ],
)
def test_the_families_of_scikit_learn_run_in_a_study(tmp_path, monkeypatch, factory):
    """In a run what components share is read-only, which not every estimator's compiled code bears."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    options = {"probability": True} if factory.endswith("SVC") else {}
    classifier = {"name": "scikit-learn", "factory": factory, "options": options}
    run = cfbench_core.run({**CONFIG, "classifiers": [classifier]}, out=tmp_path / "run")
    assert run.exit_code == 0
    assert (run.scores["value"] == 1.0).all()
