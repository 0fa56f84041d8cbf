"""Invalid tables, models and explainers in one run: each gives a clear message, and other cells are unaffected."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import cfbench_core

COLOURS = ("red", "green", "blue")
ROWS = [
    f"{value:.3f},{COLOURS[place % 3]},{'ab'[place % 2]}"
    for place, value in enumerate(np.linspace(-2, 2, 40))
]

TABLES = {
    "nan": ([*ROWS, "nan,red,a"], "nan.csv:42: column 'x': is missing ('nan')"),
    "infinite": ([*ROWS, "inf,red,a"], "infinite.csv:42: column 'x': 'inf' is not a finite number"),
    "empty": ([*ROWS, ",red,a"], "empty.csv:42: column 'x': is missing ('')"),
    "one-class": (
        [row[:-1] + "a" for row in ROWS],
        "every row has the class 'a', so there is nothing to predict",
    ),
    "constant": (["3" + row[row.index(",") :] for row in ROWS], "column 'x' has only the level '3'"),
    "short-row": ([*ROWS, "1,red"], "short-row.csv:42: has 2 values for 3 columns"),
}

OWN = """
import numpy as np

class Base:
    def __init__(self, config): ...
    def predict_proba(self, vectors):
        one = 1 / (1 + np.exp(-vectors[:, 2]))
        return np.stack([1 - one, one], axis=1)

class SaysNan(Base):
    def predict_proba(self, vectors): return np.full((len(vectors), 2), np.nan)

class ThreeClasses(Base):
    def predict_proba(self, vectors): return np.full((len(vectors), 3), 1 / 3)

class Raises(Base):
    def predict_proba(self, vectors): raise RuntimeError("out of paper")

class Explainer:
    def __init__(self, config): ...
    def counterfactuals(self, model, factuals, context): return self.answer(factuals.vectors)

class WrongShape(Explainer):
    def answer(self, vectors): return vectors[:, :2]

class HalfAnswer(Explainer):
    def answer(self, vectors): return np.where(np.arange(vectors.shape[1]) == 0, np.nan, vectors)

class Infinite(Explainer):
    def answer(self, vectors): return np.where(np.arange(vectors.shape[1]) == 0, np.inf, vectors)

class WrongDetail(Explainer):
    def answer(self, vectors):
        from cfbench_tabular.explainers.base import Explanation
        return Explanation(vectors, {"steps": np.zeros(3)})

class Sleeper(Explainer):
    def answer(self, vectors):
        import time
        time.sleep(120)

class Words(Explainer):
    def answer(self, vectors): return "the nearest one"
"""

MODELS = {
    "says-nan": "SaysNan: predict_proba returned NaN or infinity for",
    "three-classes": "predict_proba returned shape",
    "raises": "out of paper",
}

EXPLAINERS = {
    "wrong-shape": "counterfactuals has shape (10, 2), must be (10, 4)",
    "half-answer": "must be finite, or NaN in every column",
    "infinite": "must be finite, or NaN in every column",
    "wrong-detail": "the detail 'steps' has shape (3,), must be (10,)",
    "words": "must hold real numbers, got text",
}

BASE = {
    "suite": "tabular",
    "data": ["iris"],
    "classifiers": ["logistic-regression"],
    "explainers": ["nearest-enemy"],
    "metrics": ["validity", "l2"],
    "protocol": {"factuals": 5},
    "executor": "inline",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "own.py").write_text(textwrap.dedent(OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "own", raising=False)
    return tmp_path


def name(kebab):
    return "".join(part.title() for part in kebab.split("-"))


def check(run, alone, position, expected):
    """The first cell as it is without the others; of the others each fails with its reason, in one line."""
    assert run.exit_code == 1
    cells = run.cells()
    assert [cell.id for cell in cells if cell.done] == [cells[0].id]
    first = run.scores[run.scores["cell"] == cells[0].id]
    assert np.array_equal(first["value"], alone.scores["value"], equal_nan=True)
    reported = {cell.labels[position]: cell.reason for cell in cells[1:]}
    assert reported.keys() == expected.keys()
    for label, message in expected.items():
        assert message in reported[label], label
        assert "\n" not in reported[label]


def test_tables(here):
    for label, (rows, _) in TABLES.items():
        (here / f"{label}.csv").write_text("x,colour,y\n" + "\n".join(rows) + "\n")
    tables = [{"name": "csv", "label": label, "file": str(here / f"{label}.csv")} for label in TABLES]
    (here / "good.csv").write_text("x,colour,y\n" + "\n".join(ROWS) + "\n")
    tables += [{"name": "csv", "label": "no-target", "file": str(here / "good.csv"), "target": "zebra"}]
    alone = cfbench_core.run(BASE, out=here / "alone")
    run = cfbench_core.run({**BASE, "data": ["iris", *tables]}, out=here / "run")
    expected = {label: message for label, (_, message) in TABLES.items()}
    check(run, alone, "dataset", {**expected, "no-target": "no row has the class 'zebra'; there are a, b"})


def test_models(here):
    alone = cfbench_core.run(BASE, out=here / "alone")
    own = [{"import": f"own:{name(model)}"} for model in MODELS]
    run = cfbench_core.run({**BASE, "classifiers": ["logistic-regression", *own]}, out=here / "run")
    check(run, alone, "model", MODELS)


def test_explainers(here):
    alone = cfbench_core.run(BASE, out=here / "alone")
    own = [{"import": f"own:{name(explainer)}"} for explainer in EXPLAINERS]
    run = cfbench_core.run({**BASE, "explainers": ["nearest-enemy", *own]}, out=here / "run")
    check(run, alone, "explainer", EXPLAINERS)


@pytest.mark.slow
def test_an_explainer_that_takes_too_long_is_an_outcome(here):
    process = {**BASE, "executor": "process", "workers": 2, "limits": {"seconds": 8}}
    run = cfbench_core.run(
        {**process, "explainers": ["nearest-enemy", {"import": "own:Sleeper"}]}, out=here / "run"
    )
    assert [cell.status for cell in run.cells()] == ["ok", "timeout"]
    status = run.scores.groupby("explainer")["status"].unique().map(list)
    assert status.to_dict() == {"nearest-enemy": ["ok"], "sleeper": ["timeout"]}


@pytest.mark.slow
def test_tables_that_are_awkward_but_sound_are_explained(here):
    """A class with one row, a level that no training row has, and a number that is the same in all training rows."""
    many = [*ROWS[:20], *(row[:-1] + "a" for row in ROWS[20:])]
    awkward = {
        "rare": [*(row[:-1] + "a" for row in ROWS), "9,red,b"],
        "rare-level": [*ROWS, "0.5,purple,a"],
        "nearly-constant": [f"{3 + (place < 2) * place},{row}" for place, row in enumerate(many)],
    }
    tables = []
    for label, rows in awkward.items():
        header = "z,x,colour,y" if label == "nearly-constant" else "x,colour,y"
        (here / f"{label}.csv").write_text(header + "\n" + "\n".join(rows) + "\n")
        tables.append({"name": "csv", "label": label, "file": str(here / f"{label}.csv")})
        tables[-1]["columns"] = {"x": "numeric", **({"z": "numeric"} if header[0] == "z" else {})}
    run = cfbench_core.run(
        {
            **BASE,
            "data": tables,
            "classifiers": ["mlp", "random-forest"],
            "explainers": ["nearest-enemy", "sedc"],
        },
        out=here / "run",
    )
    assert run.exit_code == 0, [cell.reason for cell in run.cells()]
