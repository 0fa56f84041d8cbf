"""What an edit of the code recomputes, and what a new version leaves as it is, over the installed distributions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Environment

Keys = dict[tuple[str, str, str], list[str]]
"""The keys of stages, by suite, kind and label."""

DISTRIBUTIONS = (
    "cfbench-core",
    "cfbench-recsys",
    "cfbench-explainers-native",
    "cfbench-explainers-gnn",
    "cfbench-tabular",
    "cfbench-text",
)
STUDIES = {
    "recsys": {
        "suite": "recsys",
        "data": "synthetic",
        "recommenders": ["ease", "lightgcn"],
        "explainers": ["random", "lime-rs", "cf2", "cf-gnnexplainer", "unr-explainer"],
        "protocol": {"level": "item", "users": 10, "scope": "user-only"},
    },
    "tabular": {
        "suite": "tabular",
        "data": ["iris", "wine"],
        "classifiers": ["logistic-regression", "random-forest"],
        "explainers": ["random", "nice", "growing-spheres"],
        "protocol": {"factuals": 5},
        "metrics": ["validity", "l2"],
    },
    "text": {
        "suite": "text",
        "data": "toy-reviews",
        "extractor": "rules",
        "generators": ["most-frequent", "item-review"],
        "judges": "overlap",
        "protocol": {"rows": 20},
    },
}
KEYS = """
import json, sys
from cfbench_core.api import prepare
studies = json.load(open("studies.json"))
found = [
    [suite, stage.kind, stage.label, stage.key]
    for suite, study in studies.items()
    for stage in prepare(study).plan.stages()
]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def environment(environment_with: Callable[..., Environment]) -> Environment:
    return environment_with(*DISTRIBUTIONS)


def purelib(environment: Environment) -> Path:
    """Where the distributions are installed."""
    script = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return Path(environment.python("-c", script).stdout.strip())


@pytest.fixture(scope="module")
def code(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the installed packages that may be edited; it is found before the installed ones."""
    folder = tmp_path_factory.mktemp("code")
    for package in purelib(environment).glob("cfbench_*"):
        if package.is_dir() and not package.name.endswith("-info"):
            shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def before(environment: Environment, code: Path) -> Keys:
    """The keys of the code as it is installed."""
    return keys(environment, code)


def keys(environment: Environment, code: Path) -> Keys:
    """The keys of all stages, by suite, kind and label."""
    (environment.work / "studies.json").write_text(json.dumps(STUDIES))
    done = environment._run("python", "-c", KEYS, extra={"PYTHONPATH": str(code)})
    assert done.returncode == 0, done.stderr
    found: Keys = {}
    for suite, kind, label, key in json.loads(done.stdout):
        found.setdefault((suite, kind, label), []).append(key)
    return found


@dataclass(frozen=True)
class Edit:
    """An edit of a file, and which stages depend on it: by suite, kind and label."""

    file: str
    old: str
    new: str
    depends: Callable[[str, str, str], bool]

    def __str__(self) -> str:
        return f"{self.file}: {self.old!r} -> {self.new!r}"


DESCENT = ("cf2-cfbench ", "cf-gnnexplainer-cfbench ")


def by_descent(suite: str, kind: str, label: str) -> bool:
    """Explanations of the methods that descend on a mask, and their scores."""
    named = label.removeprefix("scores of ")
    return suite == "recsys" and kind in ("explanations", "scores") and named.startswith(DESCENT)


EDITS = [
    Edit(
        "cfbench_explainers_gnn/descent.py",
        "from __future__",
        "# A comment.\nfrom __future__",
        lambda *_: False,
    ),
    Edit("cfbench_recsys/observations.py", '"""', '"""Another docstring. ', lambda *_: False),
    Edit("cfbench_tabular/encoding.py", "DIGITS = 12", "DIGITS = 12  # of a number", lambda *_: False),
    Edit("cfbench_core/lifecycle/stages.py", '"""', '"""Another docstring. ', lambda *_: False),
    Edit("cfbench_core/cli/root.py", "import", "import os\nimport", lambda *_: False),
    Edit("cfbench_explainers_gnn/descent.py", "= 30", "= 31", by_descent),
    Edit(
        "cfbench_recsys/observations.py",
        "dtype=np.int64",
        "dtype=np.int32",
        lambda s, k, _: (s, k) == ("recsys", "scores"),
    ),
    Edit("cfbench_recsys/splits.py", "= 0, 1, 2", "= 0, 1, 3", lambda s, k, _: s == "recsys" and k != "data"),
    Edit("cfbench_tabular/encoding.py", "DIGITS = 12", "DIGITS = 11", lambda s, *_: s == "tabular"),
    Edit("cfbench_text/triplets.py", '", and "', '" and "', lambda s, *_: s == "text"),
]


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_changes_the_keys_of_exactly_the_stages_that_depend_on_it(
    environment: Environment, code: Path, before: Keys, edit: Edit
) -> None:
    path = code / edit.file
    text = path.read_text(encoding="utf-8")
    assert edit.old in text, f"{edit.file} does not contain {edit.old!r}"
    path.write_text(text.replace(edit.old, edit.new, 1), encoding="utf-8")
    try:
        after = keys(environment, code)
    finally:
        path.write_text(text, encoding="utf-8")
    assert set(before) == set(after)
    changed = {stage for stage in before if before[stage] != after[stage]}
    assert changed == {stage for stage in before if edit.depends(*stage)}


RUN = """
import json, sys
import cfbench_core
for suite, study in json.load(open("studies.json")).items():
    cfbench_core.run(study, out=f"{sys.argv[1]}/{suite}", executor="inline")
"""
COMPARE = """
import json, sys
import pandas as pd
for suite in ("recsys", "tabular", "text"):
    before, after = (pd.read_parquet(f"{run}/{suite}/scores.parquet") for run in sys.argv[1:])
    assert len(before)
    pd.testing.assert_frame_equal(before, after)
    environment = json.load(open(f"{sys.argv[2]}/{suite}/environment.json"))
    assert environment["computed_by"][0]["versions"]["cfbench-core"] == "0.1.1"
    unit = "user" if suite == "recsys" else "unit"  # the items of a list depend on the model
    explained = before.groupby("model")[unit].agg(lambda column: tuple(sorted(set(column))))
    assert suite == "tabular" or explained.nunique() == 1  # tabular: so many of each predicted class
"""


@pytest.mark.slow
def test_a_new_version_and_comments_leave_splits_units_and_scores_as_they_are(
    environment: Environment, code: Path, tmp_path: Path
) -> None:
    """Everything is computed again in a fresh cache, with all versions raised and a comment in every file."""
    code = shutil.copytree(code, tmp_path / "code")
    recsys = {**STUDIES["recsys"], "recommenders": ["ease", "mf"], "explainers": ["random", "lime-rs"]}
    (environment.work / "studies.json").write_text(json.dumps({**STUDIES, "recsys": recsys}))
    for name in ("before", "after"):
        extra = {"PYTHONPATH": str(code), "CFBENCH_CACHE_DIR": str(tmp_path / f"cache-{name}")}
        done = environment._run("python", "-c", RUN, str(code / name), extra=extra)
        assert done.returncode == 0, done.stderr
        for path in code.rglob("*.py"):
            path.write_text(f"# A comment.\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
        for info in purelib(environment).glob("cfbench_*.dist-info"):
            shutil.copytree(info, code / info.name, dirs_exist_ok=True)
            raised = (info / "METADATA").read_text().replace("Version: 0.1.0", "Version: 0.1.1")
            (code / info.name / "METADATA").write_text(raised)
    compared = environment.python("-c", COMPARE, code / "before", code / "after")
    assert compared.returncode == 0, compared.stderr
