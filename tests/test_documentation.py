"""What the documentation shows exists: its imports are on a page of the Python API."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
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


def test_pages_that_show_the_plugin_of_a_package_name_its_module() -> None:
    """A reader copies the line from the page; the module must be the one that defines the class."""
    pages = {
        page.name: page.read_text("utf-8")
        for page in (ROOT / "docs").rglob("*.md")
        if "= PackagePlugin(" in page.read_text("utf-8")
    }
    assert {"write-a-plugin.md", "write-a-suite.md"} <= {*pages}
    source = ROOT / "cfbench-core/src/cfbench_core/component_specs.py"
    assert "\nclass PackagePlugin" in source.read_text("utf-8")
    for name, text in pages.items():
        assert "from cfbench_core.component_specs import PackagePlugin" in text, name


def test_the_objects_of_the_api_exist() -> None:
    for group in GROUPS:
        for name in group.objects:
            module = name.rpartition(".")[0] if name.rpartition(".")[2][0].isupper() else name
            parts = module.split(".")
            source = ROOT / parts[0].replace("_", "-") / "src" / Path(*parts)
            own = source.with_suffix(".py").is_file() or (source / "__init__.py").is_file()
            assert own or source.parent.with_suffix(".py").is_file(), name


DISCOURAGED = {
    "told": "reported, shown",
    "tells": "reports, shows",
    "kept": "cached, stored, held out",
    "beside": "alongside, compared with",
    "made elsewhere": "external, precomputed",
    "taken up": "resumed",
    "piece of work": "task",
    "what it asks": "what it queries",
    "is asked": "is queried",
    "are asked": "are queried",
}
"""Words of an earlier vocabulary, and what the field says instead."""


def test_pages_help_and_summaries_use_the_terms_of_the_field() -> None:
    found = [
        f"{where}: {word!r}: write {instead}"
        for where, text in written_texts()
        for word, instead in DISCOURAGED.items()
        if re.search(rf"\b{word}\b", text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def written_texts() -> Iterator[tuple[str, str]]:
    """What users read before anything runs, and where: pages, the summaries of components, and the help of commands."""
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("*/*/README.md"),
    ]
    for page in pages:
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            yield f"{page.relative_to(ROOT)}:{number}", line
    for source in ROOT.glob("*/src/**/*.py"):
        for number, line in enumerate(source.read_text("utf-8").splitlines(), 1):
            if SHOWN.search(line):
                yield f"{source.relative_to(ROOT)}:{number}", line


SHOWN = re.compile(r"summary=|help=|Help\(|caption=")
"""Lines of the sources that ``cfbench list``, ``--help`` and ``describe`` show."""

RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")


def test_links_between_files_outside_the_site_lead_somewhere() -> None:
    """Links of the site are checked where it is built (``nox -s docs``)."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("examples/*/README.md")]
    links = [(page, link) for page in pages for link in RELATIVE.findall(page.read_text("utf-8"))]
    assert links
    broken = [
        f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()
    ]
    assert not broken
