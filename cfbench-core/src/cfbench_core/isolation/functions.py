"""Functions and classes that all components share: which of them a component has replaced.

``numpy.argsort = mine`` changes every number that is computed in the process from then on.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.isolation.packages import own_packages

MODULES = (
    "builtins",
    "copy",
    "functools",
    "itertools",
    "json",
    "math",
    "os",
    "pathlib",
    "random",
    "shutil",
    "time",
    "numpy",
    "numpy.linalg",
    "numpy.random",
    "numpy.fft",
    "pandas",
    "pyarrow",
    "pyarrow.parquet",
    "scipy.sparse",
    "scipy.stats",
    "safetensors.numpy",
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.optim",
)
"""Modules of others whose functions are compared, as far as they are imported."""

CLASSES = (
    "numpy.random:Generator",
    "pandas:DataFrame",
    "pandas:Series",
    "pandas:Index",
    "pathlib:Path",
    "scipy.sparse:csr_matrix",
    "torch:Tensor",
    "torch.nn:Module",
)
"""Classes of others whose methods are compared."""

PATCHED_BY = {"torch": ("torch_geometric",)}
"""Libraries that replace functions of another one when they are imported, as PyTorch Geometric does for its tensors."""

SETTINGS = frozenset({"torch.Storage"})
"""Attributes that a setting changes: ``torch.set_default_dtype``. Settings are restored, see ``global_state.py``."""

_CONSTANTS = (int, float, str, tuple, frozenset)
"""Compared in the project's own modules only: other libraries have settings among theirs."""


@dataclass(frozen=True)
class Place:
    """An attribute of a module or a class: ``numpy.argsort``."""

    owner: Any
    label: str
    name: str

    def __str__(self) -> str:
        return f"{self.label}.{self.name}"


class Functions:
    """The functions of the shared modules, as they were when :meth:`note` first saw their module."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, str, Mapping[str, Any]]] = []
        self._noted: set[str] = set()

    def note(self) -> None:
        """Notes the functions of modules and classes that were not noted yet."""
        for owner, label in _owners(self._noted):
            own = label.partition(".")[0] in own_packages()
            known = {
                name: value
                for name, value in vars(owner).items()
                if _is_compared(name, value, own) and f"{label}.{name}" not in SETTINGS
            }
            self._known.append((owner, label, known))

    def replaced(self) -> list[Place]:
        """Those that are something else now, or gone, and methods that were added to a class."""
        return [
            Place(owner, label, name)
            for owner, label, known in self._known
            for name in [*known, *_added(owner, known)]
            if vars(owner).get(name, known) is not known.get(name)
            and not _is_of_library(vars(owner).get(name), label)
        ]

    def restore(self) -> None:
        """Puts the functions back."""
        for owner, label, known in self._known:
            for name in _added(owner, known):
                if not _is_of_library(vars(owner)[name], label):
                    delattr(owner, name)
            for name, value in known.items():
                if vars(owner).get(name) is not value and not _is_of_library(vars(owner).get(name), label):
                    setattr(owner, name, value)


def _added(owner: Any, known: Mapping[str, Any]) -> list[str]:
    """Methods of a class that it did not have; a module may get new functions when it is used first."""
    if not isinstance(owner, type):
        return []
    return [
        name
        for name, value in vars(owner).items()
        if name not in known and not name.startswith("__") and callable(value)
    ]


def _is_of_library(value: object, label: str) -> bool:
    """Whether a library replaced its own function, as torch does with ``torch.manual_seed`` when it is used first.

    What counts is the file of the code; ``__module__`` is copied by wrappers. See also ``PATCHED_BY``.
    """
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    library = label.partition(".")[0]
    return code is not None and any(
        _is_code_of(name, code.co_filename) for name in (library, *PATCHED_BY.get(library, ()))
    )


def _is_code_of(package: str, filename: str) -> bool:
    found = sys.modules.get(package)
    file = getattr(found, "__file__", None)
    return (
        file is not None and hasattr(found, "__path__") and Path(filename).is_relative_to(Path(file).parent)
    )


def _is_compared(name: str, value: object, own: bool) -> bool:
    if callable(value) or isinstance(value, (staticmethod, classmethod, property)):
        return True
    return own and isinstance(value, _CONSTANTS) and not name.startswith("__")


def _owners(noted: set[str]) -> Iterator[tuple[Any, str]]:
    """Modules and classes whose labels are not ``noted`` yet, with their labels, which are added."""
    for name in [name for name in sys.modules if name not in noted]:
        module: object = sys.modules[name]
        if not isinstance(module, types.ModuleType):
            continue
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "_initializing", False):
            continue  # it has not all of its functions yet
        noted.add(name)
        if name in MODULES:
            yield module, name
        elif name.partition(".")[0] in own_packages():
            yield module, name
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == name:
                    yield value, f"{name}.{value.__qualname__}"
    for reference in CLASSES:
        module_name, _, class_name = reference.partition(":")
        if reference not in noted and module_name in noted:
            noted.add(reference)
            found = getattr(sys.modules.get(module_name), class_name, None)
            if isinstance(found, type):
                yield found, f"{module_name}.{class_name}"
