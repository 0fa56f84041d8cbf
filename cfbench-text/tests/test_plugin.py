import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cfbench_text
from cfbench_core.component_specs import component_specs
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_core.testing import Subject, check_specs, checks_for, verify

SPECS = [component.spec for component in installed().components(suite="text")]
NEEDS_A_FILE = "text/dataset/reviews"
NEED_FILES = (NEEDS_A_FILE, "text/labelset/file")
PARTS = [
    spec.id
    for spec in SPECS
    if spec.kind != "suite" and spec.id not in NEED_FILES and not spec.details.get("pretrained")
]
"""Components that query a pretrained model are checked in test_pretrained.py, with tiny models."""

FEW = {
    "epochs": 4,
    "batch": 8,
    "length": 30,
    "dimensions": 16,
    "hidden": 32,
    "learning_rate": 0.01,
    "device": "cpu",
}
SMALL = {f"text/generator/{name}": FEW for name in ("nrt", "att2seq", "peter", "cer")}
SMALL["text/metric/meteor"] = {"stages": ("exact", "stem")}  # with synonyms: test_meteor.py
"""Options with which training takes a second."""


@functools.cache
def subject_of(component: str) -> Subject:
    """One subject for all checks, so that a model is trained once."""
    spec = next(spec for spec in SPECS if spec.id == component)
    return Subject(spec, resolve(spec.config)(**SMALL[component]) if component in SMALL else None)


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(answer.stdout.splitlines()[-1])}


def test_importing_the_plugin_imports_nothing_heavy():
    loaded = modules_after("import cfbench_text.plugin")
    assert not loaded & {"numpy", "scipy", "pandas", "torch", "transformers", "pyarrow", "yaml"}


def test_planning_the_default_imports_neither_pandas_nor_torch():
    loaded = modules_after("from cfbench_core import api; api.plan(suite='text')")
    assert not loaded & {"pandas", "torch", "transformers", "vaderSentiment", "sacrebleu"}


def test_no_sibling_is_imported_anywhere():
    siblings = ("cfbench_recsys", "cfbench_explainers_native", "cfbench_explainers_gnn", "cfbench_tabular")
    for file in Path(cfbench_text.__file__).parent.rglob("*.py"):
        text = file.read_text()
        for name in siblings:
            assert f"import {name}" not in text and f"from {name}" not in text, (file, name)


def test_every_declaration_and_every_cited_paper_exists():
    check_specs("cfbench_text")


def test_the_plugin_registers_every_declared_component():
    assert {spec.id for spec in SPECS} == {spec.id for spec in component_specs("cfbench_text")}


@pytest.mark.parametrize(
    ("component", "check"),
    [(name, check) for name in PARTS for check in checks_for(name)],
    ids=lambda value: str(value),
)
def test_conformance(component, check):
    verify(check, subject_of(component))


def test_conformance_of_the_reader_of_files(tmp_path):
    from cfbench_text.datasets.reviews import Config

    path = tmp_path / "mine.jsonl"
    path.write_text('{"user": "u", "item": "i", "text": "t"}\n')
    spec = next(spec for spec in SPECS if spec.id == NEEDS_A_FILE)
    for check in checks_for(NEEDS_A_FILE):
        if check.name in ("says-what-it-is", "configuration-is-light", "is-made-from-its-options"):
            verify(check, Subject(spec, Config(path=str(path), domain="toys")))


def test_default_models_are_those_of_the_paper():
    """Statement factuality: footnotes 2 (extraction), 17 and 18 (metrics), 12 and 13 (similarity)."""
    wanted = {
        "extractor/llm": "meta-llama/Meta-Llama-3-8B-Instruct",
        "judge/llm": "meta-llama/Llama-3.1-8B-Instruct",
        "metric/seval": "meta-llama/Llama-3.1-8B-Instruct",
        "judge/nli": "microsoft/deberta-large-mnli",
        "metric/summac-zs": "microsoft/deberta-large-mnli",
        "metric/bartscore": "facebook/bart-large-cnn",
    }
    configs = {spec.id.removeprefix("text/"): spec.config for spec in SPECS}
    assert {name: resolve(configs[name])().model for name in wanted} == wanted
