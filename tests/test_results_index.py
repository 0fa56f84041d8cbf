"""The index of stored results is complete and valid, and the replications of papers that packages name are stored."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "scripts"))

import component_versions  # noqa: E402
import index_results  # noqa: E402


def test_the_index_is_up_to_date() -> None:
    """The versions at the commits of results are taken from the index: it changes when a component raises its version."""
    text = (RESULTS / "index.json").read_text(encoding="utf-8")
    assert text == index_results.text_of_index(RESULTS, history=False), "run: python scripts/index_results.py"


def test_the_versions_in_the_index_are_those_of_the_history() -> None:
    if not component_versions.has_history():
        pytest.skip("the commits of the results are not here: no git repository, or a shallow clone")
    text = (RESULTS / "index.json").read_text(encoding="utf-8")
    assert text == index_results.text_of_index(RESULTS, history=True), "run: python scripts/index_results.py"


SOURCE = """
SPECS = (
    ComponentSpec(id="toy/explainer/lxr", summary="the lxr explainer", version="{lxr}"),
    ComponentSpec(id="toy/explainer/lxr-fast", summary="no version – the first"),
    ComponentSpec(id="toy/recommender/mf", summary="a model", version="{mf}"),
)
"""


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two commits of a repository with three components; the files are of a third state, which is not committed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    source = tmp_path / "cfbench-toy" / "src" / "toy.py"
    source.parent.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    commits = []
    for lxr, mf in (("1", "1"), ("2", "1")):
        source.write_text(SOURCE.format(lxr=lxr, mf=mf), encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "a state"], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        commits.append(done.stdout.strip())
    source.write_text(SOURCE.format(lxr="2", mf="10"), encoding="utf-8")
    monkeypatch.setattr(component_versions, "ROOT", tmp_path)
    component_versions.at_commit.cache_clear()
    return commits


@pytest.mark.parametrize(
    ("rows", "state", "outdated"),
    [
        ("explainer\nlxr-paper", "outdated", ["lxr 1 2"]),
        ("explainer\nlxr-fast-paper", "current", []),
        ("explainer,model\nlxr@5,mf", "outdated", ["lxr 1 2", "mf 1 10"]),
        ("explainer,commit\nlxr,{second}", "current", []),
        ("explainer,commit\nlxr,{first}\nlxr,{second}", "current", []),
        ("explainer,commit\nlxr,0123456789", "unknown", []),
        ("explainer,model,commit\nlxr,,0123456789\n,mf,{second}", "outdated", ["mf 1 10"]),
        ("method\nour-own", "no components", []),
    ],
)
def test_a_result_is_outdated_if_a_component_that_it_names_has_another_version(
    history: list[str], tmp_path: Path, rows: str, state: str, outdated: list[str]
) -> None:
    (tmp_path / "table.csv").write_text(rows.format(first=history[0], second=history[1][:9]) + "\n")
    result = {
        "command": "cfbench run",
        "commit": f"{history[0][:7]} (lxr)",
        "tables": [{"file": "table.csv"}],
    }
    found = index_results.state_of(tmp_path, result, component_versions.today())
    assert found["state"] == state
    shown = [f"{one['component'].split('/')[2]} {one['then']} {one['now']}" for one in found["outdated"]]
    assert shown == outdated
    # Without history, the versions that were read once decide the same.
    again = index_results.state_of(tmp_path, result, component_versions.today(), found["components"])
    assert again == found


def test_sources_of_a_commit_are_read_as_utf_8_whatever_the_locale(
    history: list[str], tmp_path: Path
) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pathlib, component_versions;"
        "component_versions.ROOT = pathlib.Path(sys.argv[2]);"
        "print(component_versions.at_commit(sys.argv[3])['toy/explainer/lxr'])"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "scripts"), str(tmp_path), history[1]],
        check=True, capture_output=True, text=True, env={**os.environ, **ascii_only},
    )  # fmt: skip
    assert done.stdout == "2\n"


def test_the_index_satisfies_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((RESULTS / "index.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((RESULTS / "index.json").read_text(encoding="utf-8")), schema)


def test_every_result_measured_here_names_its_command_commit_and_hardware() -> None:
    index = json.loads((RESULTS / "index.json").read_text(encoding="utf-8"))
    measured = [one for one in index["results"] if one["command"]]
    assert {one["name"] for one in index["results"]} - {one["name"] for one in measured} == {"literature"}
    for one in measured:
        assert re.search(r"\b[0-9a-f]{7,40}\b", one["commit"]), one["name"]
        assert one["hardware"], one["name"]


def test_the_commits_of_a_result_are_those_of_its_rows_where_its_file_names_none(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text('{"command": "measure"}', encoding="utf-8")
    (tmp_path / "speed.csv").write_text("ms,commit\n1,2222222\n2,1111111\n3,2222222\n4,\n", encoding="utf-8")
    (tmp_path / "speed-parts.csv").write_text("ms\n1\n", encoding="utf-8")
    assert index_results.result(tmp_path, "speed", ["speed"])["commit"] == "1111111, 2222222"
    (tmp_path / "speed.json").write_text('{"command": "measure", "commit": "3333333"}', encoding="utf-8")
    assert index_results.result(tmp_path, "speed", ["speed"])["commit"] == "3333333"


def test_the_commits_of_a_result_are_those_of_its_runs_where_they_differ() -> None:
    origin = {
        "commit_of_the_run": {"commit": "b"},
        "commits_by_run": {"table-5": "b", "table-5 (2)": "a", "six": "b"},
    }
    assert index_results.commit_of(origin) == "a, b"
    assert index_results.commit_of({"commit_of_the_run": {"commit": "b"}}) == "b"


def test_a_table_of_several_runs_names_the_commit_of_the_last_one() -> None:
    """In its rows; where these have another commit, the note on its origin names both."""
    for path in sorted(RESULTS.glob("*.json")):
        origin = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(origin, dict) or "merged_into" not in origin:
            continue
        last = index_results.commit_of(origin)
        of_rows = index_results.commits_of_rows([path.with_suffix(".csv")]).split(", ")
        note = origin.get("note", "")
        assert last in of_rows or all(one[:7] in note for one in (last, *of_rows)), path.name


def test_every_table_belongs_to_a_result() -> None:
    index = json.loads((RESULTS / "index.json").read_text(encoding="utf-8"))
    listed = [table["file"] for result in index["results"] for table in result["tables"]]
    assert sorted(listed) == sorted(path.name for path in RESULTS.glob("*.csv"))


def test_the_results_that_replications_name_are_stored_and_have_a_page() -> None:
    sources = (ROOT.glob("cfbench-*/src/*/replications/*.py"), ROOT.glob("cfbench-*/src/*/replications.py"))
    text = "".join(path.read_text(encoding="utf-8") for found in sources for path in found)
    names = re.findall(r'stored="(replication-[a-z0-9-]+)"', text)
    assert len(names) >= 5
    for name in names:
        assert (RESULTS / f"{name}.csv").is_file(), name
        assert (ROOT / "docs" / "replications" / f"{name.removeprefix('replication-')}.md").is_file(), name
