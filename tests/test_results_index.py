"""The index of stored results is complete and valid, and the replications of papers that packages name are stored."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "scripts"))

import index_results  # noqa: E402


def test_the_index_is_up_to_date() -> None:
    text = (RESULTS / "index.json").read_text(encoding="utf-8")
    assert text == index_results.text_of_index(RESULTS), "run: python scripts/index_results.py"


def test_the_index_satisfies_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((RESULTS / "index.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((RESULTS / "index.json").read_text(encoding="utf-8")), schema)


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
