"""Reads the specs of a package's components from their files without importing them.

A component declares itself in its own file, as a literal that starts and ends at column 0::

    SPEC = ComponentSpec(
        id="recsys/explainer/lime-rs",
        summary="Local linear surrogate fitted on perturbed histories",
        target=f"{__name__}:LimeRS",
        config=f"{__name__}:Config",
        needs={"recommender": {"access": {"scores"}}},
    )

A file with several components has ``SPECS = (ComponentSpec(...), ...)``. The literal may hold constants, tuples,
lists, sets, dictionaries, negative numbers, ``__name__``, f-strings of ``__name__`` and adjacent strings. Nothing
is executed, so listing the components of a package imports none of their dependencies.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfbench_core.hooks import KIND_OF_HOOK, hookimpl
from cfbench_core.specs import ComponentSpec

_BLOCK = re.compile(r"^SPECS? = (?:[^\n]*\)$|\(?[^\n]*\n.*?^\))", re.MULTILINE | re.DOTALL)
"""A declaration on one line, or up to the closing parenthesis at column 0."""
_START = re.compile(r"^SPECS? = (?:ComponentSpec\(|\()", re.MULTILINE)


def component_specs(package: str, *kinds: str) -> list[ComponentSpec]:
    """The specs that the files of a package declare, sorted by id; of all kinds if none is given.

    Folders called ``templates`` are left out.

    Raises:
        ModuleNotFoundError: if there is no such package.
        ValueError: if a declaration is not a literal or not a valid spec; names the file and the line.
    """
    return [spec for spec in _declared(package) if not kinds or spec.kind in kinds]


@functools.cache
def _declared(package: str) -> tuple[ComponentSpec, ...]:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {package!r}", name=package)
    specs = [
        spec
        for folder in found.submodule_search_locations
        for module, path in _files(folder, package)
        for spec in specs_of_file(path, module)
    ]
    return tuple(sorted(specs, key=lambda spec: spec.id))


def _files(folder: str, package: str) -> Iterator[tuple[str, str]]:
    """The modules below a folder and their files."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            stem, dot, suffix = entry.name.partition(".")
            if entry.is_dir():
                if stem.isidentifier() and not dot and stem not in ("templates", "__pycache__"):
                    yield from _files(entry.path, f"{package}.{stem}")
            elif suffix == "py":
                yield (package if stem == "__init__" else f"{package}.{stem}"), entry.path


def specs_of_file(path: str | Path, module: str) -> list[ComponentSpec]:
    """The specs that one file declares; ``module`` is the value of ``__name__`` in it."""
    with open(path, "rb") as file:  # noqa: PTH123  one open call is half the cost of a Path object
        raw = file.read()
    if b"SPEC" not in raw:
        return []
    text = raw.decode("utf-8").replace("\r\n", "\n")
    found: list[ComponentSpec] = []
    for start in _START.finditer(text):
        first_line = text.count("\n", 0, start.start()) + 1
        block = _BLOCK.match(text, start.start())
        if block is None:
            raise ValueError(f"{path}:{first_line}: no ')' at the start of a line ends this declaration")
        try:
            tree = ast.parse(block.group())
        except SyntaxError as error:
            line = first_line + (error.lineno or 1) - 1
            raise ValueError(f"{path}:{line}: {error.msg}; is every ')' inside it indented?") from None
        statement = tree.body[0]
        assert isinstance(statement, ast.Assign)
        declared = statement.value
        calls = declared.elts if isinstance(declared, ast.Tuple) else [declared]
        found += [_spec(call, f"{path}", first_line - 1, module) for call in calls]
    return found


class _NotLiteralError(ValueError):
    """An expression that would have to be executed."""

    def __init__(self, node: ast.expr) -> None:
        super().__init__(f"'{ast.unparse(node)}' is not a literal")
        self.line = node.lineno


def _spec(node: ast.expr, path: str, offset: int, module: str) -> ComponentSpec:
    try:
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "ComponentSpec":
            raise _NotLiteralError(node)
        if node.args:
            raise _NotLiteralError(node.args[0])
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _NotLiteralError(keyword.value)
            options[keyword.arg] = _value(keyword.value, module)
        return ComponentSpec(**options)
    except _NotLiteralError as error:
        line, reason = error.line, str(error)
    except (TypeError, ValueError) as error:  # an unknown or missing field, or a value that the spec rejects
        line, reason = node.lineno, str(error).replace("ComponentSpec.__init__()", "ComponentSpec")
    raise ValueError(f"{path}:{offset + line}: {reason}")


def _value(node: ast.expr, module: str) -> Any:
    """The value of a literal expression. Raises _NotLiteralError for anything else."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id="__name__"):
            return module
        case ast.Tuple(elts=members):
            return tuple(_value(member, module) for member in members)
        case ast.List(elts=members):
            return [_value(member, module) for member in members]
        case ast.Set(elts=members):
            return {_value(member, module) for member in members}
        case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
            return {
                _value(key, module): _value(value, module)
                for key, value in zip(keys, values, strict=True)
                if key
            }
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, module) for part in parts)
    raise _NotLiteralError(node)


def _text(node: ast.expr, module: str) -> str:
    """A part of an f-string: text, or ``{__name__}``."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
        return str(_value(node.value, module))
    raise _NotLiteralError(node)


class PackagePlugin:
    """A plugin that announces all components of one package: ``PLUGIN = PackagePlugin("my_package")``.

    Its entry point names the object: ``my-plugin = "my_package.plugin:PLUGIN"``.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    @hookimpl
    def cfbench_datasets(self) -> list[ComponentSpec]:
        return component_specs(self.package, "dataset")

    @hookimpl
    def cfbench_recommenders(self) -> list[ComponentSpec]:
        return component_specs(self.package, "recommender")

    @hookimpl
    def cfbench_explainers(self) -> list[ComponentSpec]:
        return component_specs(self.package, "explainer")

    @hookimpl
    def cfbench_metrics(self) -> list[ComponentSpec]:
        return component_specs(self.package, "metric")

    @hookimpl
    def cfbench_components(self) -> list[ComponentSpec]:
        named = set(KIND_OF_HOOK.values())
        return [spec for spec in component_specs(self.package) if spec.kind not in named]
