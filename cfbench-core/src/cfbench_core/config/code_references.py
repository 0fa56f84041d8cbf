"""Where the code comes from that a configuration names, and which of it may be used.

A configuration may come from a stranger. It can name code (``import:``, ``factory:``), but only

- the user's own: modules outside of the standard library and of what is installed, found in the folder of the
  configuration, on ``PYTHONPATH``, or in a project that is installed as editable;
- classes of the few libraries that an option lists.

So a configuration without files of its own calls no function of an installed library. See
``docs/explanation/security.md``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plain_text import one_line

if TYPE_CHECKING:
    from cfbench_core.config.document import Document

Origin = Literal["standard library", "installed", "own", "missing"]

IMPORT = "import:"
"""How a value begins that names a user-defined class instead of a registered component."""

_KEYS = frozenset({"import", "factory"})


def names_code(document: Document) -> bool:
    """Whether a configuration names code, so that its folder is needed on the module path."""
    return any(key in _KEYS or node.value.startswith(IMPORT) for key, node in document.scalars())


def add_module_folder(folder: str) -> None:
    """Puts a folder last on the module path, so that no file in it replaces a module of Python or of a library."""
    if folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def module_path(folders: Sequence[str]) -> list[str]:
    """``sys.path`` for a worker: as it is here, then ``folders``.

    The entry "" of ``python -c`` and of interactive sessions stands for the working directory; it goes last as well.
    """
    path = [folder for folder in sys.path if folder]
    last = [folder for folder in folders if folder not in path]
    if "" in sys.path:
        last.append(str(Path.cwd()))
    return [*path, *last]


def origin(module: str) -> Origin:
    """Where a module comes from, by its top-level package. Imports nothing."""
    # Here, because most commands never need it and it reads the entry points of all plugins.
    from cfbench_core.lifecycle.code import in_library_folders, plugin_packages

    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return "standard library"
    if top == "__main__" or not top.isidentifier():
        return "missing"
    try:
        if importlib.util.find_spec(top) is None:
            return "missing"
    except (ImportError, ValueError, AttributeError):  # a module without a file, if it is loaded
        return "own" if top in sys.modules else "missing"
    if top.startswith("cfbench_") or top in plugin_packages() or in_library_folders(top):
        return "installed"
    return "own"


def reference_problem(reference: str, libraries: Sequence[str]) -> str:
    """Why ``"package.module:name"`` may not be used where classes of ``libraries`` may; empty if it may.

    A library is listed as a package ("sklearn") or as one module ("cfbench_tabular.classifiers.torch").
    """
    module, colon, name = reference.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        return f"{one_line(reference, 100)!r} must be 'package.module:name'"
    if any(module == library or module.startswith(f"{library}.") for library in libraries):
        return ""
    where = origin(module)
    if where == "own":
        return _absent_name(module, name)
    if where == "missing":
        return (
            f"no module {module.partition('.')[0]!r} in the folder of the configuration or on the module path"
        )
    others = f", or a class of {', '.join(libraries)}" if libraries else ""
    part = "Python's standard library" if where == "standard library" else "an installed package"
    return f"{reference!r} is in {part}; it must be code of your own{others}"


def _absent_name(module: str, name: str) -> str:
    """The message that a module of the user lacks a name, as far as its source can tell; else empty. Imports nothing."""
    names = _names_of_loaded(module) or _names_in_source(module)
    if not names or name in names:
        return ""
    return f"{module} has no {name!r}.{did_you_mean(name, names)}"


def _names_of_loaded(module: str) -> frozenset[str]:
    found = sys.modules.get(module)
    return frozenset() if found is None or hasattr(found, "__getattr__") else frozenset(vars(found))


def _names_in_source(module: str) -> frozenset[str]:
    """All names that a file binds. None for a module inside a package, and where only running the file would tell."""
    if "." in module:
        return frozenset()  # to find it, its package would be imported
    try:
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
            return frozenset()
        source = Path(str(spec.origin)).read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (ImportError, OSError, ValueError, SyntaxError, RecursionError):
        return frozenset()  # whoever imports it says what is wrong
    if any(word in source for word in ("import *", "__getattr__", "globals(", "exec(", "setattr(")):
        return frozenset()
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
    return frozenset(bound)


def checked_reference(reference: str, libraries: Sequence[str], what: str) -> None:
    """Refuses what :func:`reference_problem` refuses, in a worker before anything is imported.

    Raises:
        UserError: that begins with ``what``.
    """
    problem = reference_problem(reference, libraries)
    if problem:
        raise UserError(f"{what}: {problem}")


def named_object(reference: str, what: str, libraries: Sequence[str] = ()) -> Any:
    """The object named ``"package.module:name"``: user-defined, or a class of one of the libraries.

    A configuration may come from a stranger, so no function of an installed library is returned.

    Raises:
        UserError: if it may not be used or cannot be imported.
    """
    checked_reference(reference, libraries, what)
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module of the user may raise any exception
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"{what}: cannot import {module_name}: {reason}") from error
    if not hasattr(module, name):
        raise UserError(f"{what}: {module_name} has no {name!r}.{did_you_mean(name, vars(module))}")
    found = getattr(module, name)
    if origin(module_name) != "own" and not _is_class_of(found, module_name):
        raise UserError(
            f"{what}: {reference!r} is not a class of that library; of a library only classes can be named, "
            "a module of your own may hold anything"
        )
    return found


def _is_class_of(found: Any, module: str) -> bool:
    return isinstance(found, type) and found.__module__.partition(".")[0] == module.partition(".")[0]
