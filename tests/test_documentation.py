"""What the documentation shows exists: its imports are on a page of the Python API."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_hooks"))

from reference_pages.api import GROUPS  # noqa: E402

IMPORT = re.compile(r"^from (cfbench_(?:core|recsys|tabular|text)[\w.]*) import", re.MULTILINE)
IMPLEMENTATIONS = re.compile(r"\.(explainers|classifiers|extractors|recommenders)\.(?!base$)\w+$")
"""Components are on pages of their own."""


def documented_imports() -> dict[str, str]:
    """Each module that a page or an example plugin imports from, and where."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/src/**/*.py"), *ROOT.glob("*/README.md")]
    return {
        name: str(page.relative_to(ROOT))
        for page in pages
        for name in IMPORT.findall(page.read_text("utf-8"))
    }


def test_the_modules_that_pages_import_from_are_on_a_page_of_the_api() -> None:
    found = documented_imports()
    assert len(found) >= 10
    documented = {name for group in GROUPS for name in group.objects} | {"cfbench_core"}
    missing = {
        name: page
        for name, page in found.items()
        if not IMPLEMENTATIONS.search(name)
        and not any(name == one or one.startswith(f"{name}.") for one in documented)
    }
    assert not missing, f"add them to GROUPS in docs/_hooks/reference_pages/api.py: {missing}"


def test_the_objects_of_the_api_exist() -> None:
    for group in GROUPS:
        for name in group.objects:
            module = name.rpartition(".")[0] if name.rpartition(".")[2][0].isupper() else name
            parts = module.split(".")
            source = ROOT / parts[0].replace("_", "-") / "src" / Path(*parts)
            own = source.with_suffix(".py").is_file() or (source / "__init__.py").is_file()
            assert own or source.parent.with_suffix(".py").is_file(), name
