"""The Python call that each command is, for the pages of the commands and of the API."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import click

from cfbench_core.cli.root import cli

CALLS = {
    "advise": """
from cfbench_core import analyse
suggested = analyse("advice", "runs/study")
""",
    "analyse": """
from cfbench_core import analyse
table = analyse("agreement", "runs/study")
""",
    "cache": """
from cfbench_core.store import Store
sizes = {entry.label: entry.bytes for entry in Store().entries()}
""",
    "check": """
from cfbench_core.testing import check_component
report = check_component("lime-rs")
""",
    "cite": """
from cfbench_core import cite
papers = cite("runs/study")
""",
    "compare": """
from cfbench_core import Run
from cfbench_core.comparison import compare
found = compare(Run("runs/before"), Run("runs/study"))
""",
    "convert": """
from pathlib import Path
from cfbench_recsys.conversion.convert import convert
from cfbench_recsys.interactions import from_pairs
data = from_pairs("shop", users=["ann", "bob"], items=["tea", "cup"])  # what the model was trained with
written = convert(Path("model.npz"), data, Path("weights.safetensors"))
""",
    "data": """
from cfbench_core import installed
from cfbench_core.data_status import statuses
states = {dataset.id: dataset.state for dataset in statuses(installed())}
""",
    "describe": """
from cfbench_core.component_documentation import describe
options = describe("lime-rs")["configuration"]
""",
    "doctor": """
from cfbench_core.diagnosis import diagnose
problems = [finding for finding in diagnose() if finding.advice]
""",
    "evaluate": """
from pathlib import Path
from cfbench_core import run
found = run("study.yaml", explanations=Path("theirs.parquet"))
""",
    "evaluate-extractor": """
from cfbench_core.data_files import DataAccess
from cfbench_text.extractors.rules import Config, Rules
from cfbench_text.labelled_triplets.measure import measured, table
from cfbench_text.labelled_triplets.sets import load_set
found = load_set("toy-reviews", DataAccess())
shares = table(measured(found, {"rules": Rules(Config())}, "all"))
""",
    "explain": """
from cfbench_core.sentences import explain
sentences = [one.sentence for one in explain("runs/study")]
""",
    "export": """
from cfbench_core.exports import export
export("runs/study", "csv", "study-tables")
""",
    "init": """
from cfbench_core.initial_configuration import initial_configuration
text = initial_configuration("recsys")
""",
    "list": """
from cfbench_core import installed
names = [component.spec.name for component in installed().components("explainer", "recsys")]
""",
    "meta-evaluate": """
from cfbench_text.meta_evaluation.evaluate import meta_evaluate
agreement = meta_evaluate({"labelsets": ["sick"], "judges": ["overlap"]})
""",
    "new-plugin": """
from pathlib import Path
from cfbench_core.plugin_template import NewPlugin, write
files = write(NewPlugin("my-explainer", "recsys", "My explainer", "explainer"), Path("my-explainer"))
""",
    "plan": """
from cfbench_core.api import plan
cells = plan("study.yaml").cells
""",
    "plugins": """
from cfbench_core import installed
versions = {plugin.distribution: plugin.version for plugin in installed().plugins}
""",
    "report": """
from cfbench_core import Run
from cfbench_core.reports import render
table = render(Run("runs/study"), "latex")
""",
    "reproduce": """
from cfbench_core.replications import reproduce
found = reproduce("cf-tabular", "table-4")
""",
    "run": """
from cfbench_core import run
found = run("study.yaml")
""",
    "status": """
from cfbench_core.run_status import status
state = status("runs/study").state
""",
    "train-judge": """
from cfbench_core.data_files import DataAccess
from cfbench_text.judges.judge_training import train
from cfbench_text.judges.trained import Config
from cfbench_text.labelsets import sick
labelset = sick.SICK(sick.Config(part="train"))
judge = train([labelset.load(labelset.find(DataAccess()))], {}, Config())
""",
    "tune": """
from cfbench_core import tune
found = tune("study.yaml", component="lime-rs", trials=20)
""",
    "view": """
from cfbench_core.view import serve
serve("runs/study")
""",
}
"""A snippet for each command: what it imports is the public call."""

WITHOUT = {"completion"}
"""Commands that are about the terminal alone."""


def problems() -> list[str]:
    """Commands without a Python call, calls of commands that do not exist, and names that cannot be imported."""
    commands = {*cli.list_commands(click.Context(cli))} - WITHOUT
    return [
        *(f"python_calls.py: no Python call of 'cfbench {name}'" for name in sorted(commands - {*CALLS})),
        *(f"python_calls.py: there is no command 'cfbench {name}'" for name in sorted({*CALLS} - commands)),
        *(
            f"python_calls.py: {module} has no {name}"
            for snippet in CALLS.values()
            for module, name in _imports(snippet)
            if name not in _names_of(module)
        ),
    ]


def _imports(snippet: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(snippet).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def _names_of(module: str) -> frozenset[str]:
    """What a module defines or imports, and of a package its modules. Its source is read, since some import torch."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        return frozenset()
    source = Path(found.origin)
    names = {path.stem for path in source.parent.glob("*.py")} if source.stem == "__init__" else set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def markdown(name: str) -> list[str]:
    """Lines that show the call of a command."""
    if name not in CALLS:
        return []
    return ["In Python:", "", "```python", CALLS[name].strip(), "```", ""]
