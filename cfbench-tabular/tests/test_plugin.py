import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cfbench_tabular
from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import level_of
from cfbench_core.specs import resolve
from cfbench_core.testing import checks_for, verify
from cfbench_tabular.datasets.csv import Config as CsvConfig

SPECS = [component.spec for component in installed().components(suite="tabular")]
PARTS = [spec.id for spec in SPECS if spec.kind != "suite"]


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}


def test_the_main_components_are_registered():
    assert set(PARTS) >= {
        "tabular/dataset/iris",
        "tabular/dataset/wine",
        "tabular/dataset/breast-cancer",
        "tabular/classifier/mlp",
        "tabular/classifier/logistic-regression",
        "tabular/explainer/nearest-enemy",
        "tabular/explainer/growing-spheres",
        "tabular/explainer/sedc",
        "tabular/metric/coverage",
        "tabular/metric/sparsity",
        "tabular/metric/l2",
        "tabular/metric/realism",
    }


def test_importing_the_plugin_imports_nothing_heavy():
    loaded = modules_after("import cfbench_tabular.plugin")
    assert not loaded & {"numpy", "scipy", "pandas", "sklearn", "torch", "pyarrow"}


def test_planning_the_default_imports_neither_pandas_nor_scikit_learn():
    loaded = modules_after("from cfbench_core import api; api.plan(suite='tabular')")
    assert not loaded & {"pandas", "sklearn", "torch"}


def test_no_sibling_is_imported_and_torch_in_one_function_only():
    siblings = ("cfbench_recsys", "cfbench_explainers_native", "cfbench_explainers_gnn", "cfbench_text")
    for file in Path(cfbench_tabular.__file__).parent.rglob("*.py"):
        text = file.read_text()
        for name in siblings:
            assert f"import {name}" not in text and f"from {name}" not in text, (file, name)
        torch = re.findall(r"^( *)(?:import|from) torch\b", text, re.MULTILINE)
        assert torch == (["        "] if file.name == "torch.py" else []), file


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_every_reference_resolves(spec):
    resolve(spec.target)
    if spec.config:
        resolve(spec.config)


@pytest.mark.parametrize(
    ("component", "check"),
    [(name, check) for name in PARTS for check in checks_for(name)],
    ids=lambda value: str(value),
)
def test_conformance(component, check, tmp_path):
    if component == "tabular/classifier/torch":
        pytest.importorskip("torch")
    if component == "tabular/explainer/mace":
        pytest.importorskip("z3")
    if component == "tabular/explainer/tree-optimum":
        pytest.importorskip("ortools")
    options = None
    if component == "tabular/dataset/csv":
        (tmp_path / "mine.csv").write_text("x,colour,y\n1,red,a\n2,blue,b\n3,red,a\n4,red,b\n" * 3)
        options = CsvConfig(file=str(tmp_path / "mine.csv"))
    verify(check, component, options=options)


def test_every_explainer_of_a_paper_states_how_far_it_is_that_of_the_paper() -> None:
    found = installed().components()
    own = [c.spec for c in found if c.distribution == "cfbench-tabular" and c.spec.kind == "explainer"]
    assert any(spec.papers for spec in own)
    assert [spec.id for spec in own if spec.papers and level_of(spec) is None] == []
