"""Who may import whom (docs/explanation/design.md), told from the code's own import statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "cfbench-core": set(),
    "cfbench-recsys": {"cfbench_core"},
    "cfbench-explainers-native": {"cfbench_core", "cfbench_recsys"},
    "cfbench-explainers-gnn": {"cfbench_core", "cfbench_recsys"},
    "cfbench-tabular": {"cfbench_core"},
    "cfbench-text": {"cfbench_core"},
}
FORBIDDEN = {
    "cfbench-core": {"torch", "sklearn"},
    "cfbench-tabular": {"torch", "torch_geometric"},
}
BEHIND_AN_EXTRA = {
    "cfbench-tabular/src/cfbench_tabular/classifiers/torch.py",
    "cfbench-core/src/cfbench_core/devices/availability.py",
    "cfbench-core/src/cfbench_core/devices/batches.py",
    "cfbench-core/src/cfbench_core/devices/cuda.py",
}
"""Files that may, inside functions: who uses them asked for ``cfbench-tabular[torch]``, or computes on CUDA."""


def imports(path: Path, top_level_only: bool = False) -> Iterator[str]:
    """The modules that a file imports; those for type checkers alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))

    def walk(nodes: list[ast.stmt]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for child in ("body", "orelse", "finalbody", "handlers"):
                yield from walk(
                    [n for n in getattr(node, child, []) if isinstance(n, (ast.stmt, ast.excepthandler))]
                )

    yield from walk(tree.body)


def sources(distribution: str) -> list[Path]:
    return sorted((ROOT / distribution / "src").rglob("*.py"))


def test_every_distribution_has_its_rule() -> None:
    assert set(MAY_IMPORT) == {path.parent.name for path in ROOT.glob("cfbench-*/pyproject.toml")}


@pytest.mark.parametrize("distribution", sorted(MAY_IMPORT))
def test_nobody_imports_a_sibling_that_it_may_not(distribution: str) -> None:
    own = distribution.replace("-", "_")
    allowed = MAY_IMPORT[distribution] | {own}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(distribution)
        if "templates" not in path.parts
        for name in imports(path)
        if name.split(".")[0].startswith("cfbench") and name.split(".")[0] not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("distribution", sorted(FORBIDDEN))
def test_light_distributions_stay_light(distribution: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(distribution)
        if "templates" not in path.parts
        for name in imports(path, top_level_only=str(path.relative_to(ROOT)) in BEHIND_AN_EXTRA)
        if name.split(".")[0] in FORBIDDEN[distribution]
    ]
    assert not wrong


@pytest.mark.parametrize("distribution", sorted(set(MAY_IMPORT) - {"cfbench-core"}))
def test_component_files_import_torch_and_pandas_only_inside_functions(distribution: str) -> None:
    """Configurations are decoded from these files when a run is planned, without torch."""
    folders = {
        "explainers",
        "recommenders",
        "datasets",
        "classifiers",
        "metrics",
        "analysis",
        "extractors",
        "judges",
    }
    components = [
        path
        for path in sources(distribution)
        if path.parent.name in folders or distribution.startswith("cfbench-explainers")
    ]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name} at its top"
        for path in components
        for name in imports(path, top_level_only=True)
        if name.split(".")[0] in {"torch", "pandas", "sklearn", "transformers"}
    ]
    assert components and not wrong


def test_the_project_never_imports_the_package_of_somebody_else() -> None:
    """``cfbench`` on the index is the framework of another group."""
    wrong = [
        str(path.relative_to(ROOT))
        for distribution in MAY_IMPORT
        for path in sources(distribution)
        if "templates" not in path.parts
        for name in imports(path)
        if name.split(".")[0] == "cfbench"
    ]
    assert not wrong


# Cycles and sizes

LONGEST = 450
"""Lines that a module may have."""


def every_import(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Everything that a file imports anywhere: in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or "", tuple(alias.name for alias in node.names)


def import_graph(distribution: str) -> dict[str, set[str]]:
    """The modules of a distribution, each with those of the same distribution that it imports."""
    root = ROOT / distribution / "src"
    files = [path for path in sources(distribution) if "templates" not in path.parts]
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        found = set()
        for imported, names in every_import(path):
            inner = {f"{imported}.{name}" for name in names} & modules.keys()
            outer = len(inner) < len(names) or not names
            found |= inner | ({imported} & modules.keys() if outer else set())
        graph[module] = found - {module}
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module."""
    reachable: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [*graph[start]]
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += graph[module]
        reachable[start] = seen
    found = {
        tuple(sorted(other for other in reachable[start] if start in reachable[other]))
        for start in graph
        if start in reachable[start]
    }
    return [list(modules) for modules in sorted(found)]


def test_a_cycle_is_found_and_a_chain_is_none() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("distribution", sorted(MAY_IMPORT))
def test_modules_do_not_import_each_other_in_a_circle(distribution: str) -> None:
    """Imports inside functions and for type checkers count as well: a circle is a design that has no bottom."""
    assert cycles(import_graph(distribution)) == []


@pytest.mark.parametrize("distribution", sorted(MAY_IMPORT))
def test_no_module_is_too_long(distribution: str) -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for folder in ("src", "tests")
        for path in sorted((ROOT / distribution / folder).rglob("*.py"))
        if (lines := path.read_text(encoding="utf-8").count("\n")) > LONGEST
    ]
    assert not long


def defined(path: Path) -> set[str]:
    """The names that a module binds at its top level, imports among them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def missing_names(path: Path) -> Iterator[str]:
    """The names that a file imports from this project and that are not there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        package = (getattr(node, "module", None) or "").split(".")[0]
        distribution = package.replace("_", "-")
        if not isinstance(node, ast.ImportFrom) or distribution not in MAY_IMPORT:
            continue
        module = ROOT.joinpath(distribution, "src", *str(node.module).split("."))
        file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        names = defined(file) if file.is_file() else set()
        submodules = {part.stem for part in module.glob("*")} if module.is_dir() else set()
        for alias in node.names:
            if alias.name not in names | submodules:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("folder", ["benchmarks", "docs/_hooks", "examples", "scripts", "tests"])
def test_what_scripts_import_from_the_project_exists(folder: str) -> None:
    """They run by hand, some of them rarely, so that nothing else would notice a renamed function."""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    found = {str(path.relative_to(ROOT)): list(missing_names(path)) for path in files}
    assert not {path: names for path, names in found.items() if names}
