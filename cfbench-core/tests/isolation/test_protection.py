"""What tasks hand out is read-only, once and for every task."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cfbench_core.isolation import protection
from cfbench_core.isolation.functions import Functions


def test_an_object_is_frozen_anew_when_it_replaces_one_that_is_gone() -> None:
    """A new object may have the ``id`` of an old one; it is searched nevertheless."""
    for _ in range(200):
        holder = SimpleNamespace(values=np.zeros(3))
        protection.protect("the data", holder)
        assert not holder.values.flags.writeable


def test_a_part_of_a_lasting_object_is_read_only_in_a_chunk_too() -> None:
    data = SimpleNamespace(values=np.zeros(3))
    protection.protect("the data", data)
    chunk = SimpleNamespace(data=data, own=np.zeros(2))
    protection.protect("the units", chunk, lasting=False)
    assert not chunk.own.flags.writeable and not data.values.flags.writeable


def test_a_library_may_replace_its_own_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch does when it is used first; a wrapper of somebody else has its code in another file."""
    (tmp_path / "lazy_library").mkdir()
    (tmp_path / "lazy_library/__init__.py").write_text(
        "def draw(): return 1\ndef load():\n    global draw\n    def draw(): return 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("cfbench_core.isolation.functions.MODULES", ("lazy_library",))
    library = importlib.import_module("lazy_library")
    functions = Functions()
    functions.note()

    library.load()
    assert functions.replaced() == []

    own = library.draw
    library.draw = functools.wraps(own)(lambda: 3)
    assert [str(place) for place in functions.replaced()] == ["lazy_library.draw"]
    functions.restore()
    assert library.draw() == 1
    del sys.modules["lazy_library"]


def test_a_library_that_is_known_to_may_replace_functions_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("patched", "def draw(): return 1\n"),
        ("known", "import patched\ndef draw(): return 2\npatched.draw = draw\n"),
        ("unknown", "import patched\ndef draw(): return 3\npatched.draw = draw\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("cfbench_core.isolation.functions.MODULES", ("patched",))
    monkeypatch.setattr("cfbench_core.isolation.functions.PATCHED_BY", {"patched": ("known",)})
    library = importlib.import_module("patched")
    functions = Functions()
    functions.note()

    importlib.import_module("known")
    assert functions.replaced() == [] and library.draw() == 2
    functions.restore()
    assert library.draw() == 2

    importlib.import_module("unknown")
    assert [str(place) for place in functions.replaced()] == ["patched.draw"]
    for name in ("patched", "known", "unknown"):
        del sys.modules[name]
