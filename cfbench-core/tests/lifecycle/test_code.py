"""The digest of a component's code changes with every line that can change a result, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cfbench_core.lifecycle import code_digests
from cfbench_core.lifecycle.code_digests import code_digest

FILES = {
    "cfbench_made/__init__.py": '"""A package."""\n',
    "cfbench_made/model.py": (
        '"""A model."""\n'
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "import numpy as np\n"
        "from cfbench_core.specs import ComponentSpec\n"
        "from cfbench_made.helper import scale\n"
        "from cfbench_made.shared import Tool\n"
        "from .words import load\n"
        "if TYPE_CHECKING:\n"
        "    from cfbench_made.typing_only import Shape\n"
        'SPEC = ComponentSpec(\n    id="made/model/model", summary="A model", target=f"{__name__}:Model"\n)\n'
        "class Model:\n"
        '    """Its docstring."""\n'
        "    def fit(self) -> float:\n"
        "        from cfbench_made import lazy\n"
        "        from cfbench_made.starred import BASE\n"
        "        assert scale(1) > 0  # positive\n"
        "        return scale(lazy.STEP)\n"
    ),
    "cfbench_made/helper.py": "FACTOR = 2\ndef scale(x):\n    return FACTOR * x\n",
    "cfbench_made/lazy.py": "STEP = {'a', 'b'}\n",
    "cfbench_made/typing_only.py": "Shape = tuple\n",
    "cfbench_made/other.py": "OTHER = 1\n",
    "cfbench_made/shared/__init__.py": (
        "from cfbench_made.shared.tool import Tool\nfrom cfbench_made.shared.rest import Rest\n"
    ),
    "cfbench_made/shared/tool.py": "class Tool:\n    size = 3\n",
    "cfbench_made/shared/rest.py": "class Rest:\n    size = 4\n",
    "cfbench_made/starred/__init__.py": "from cfbench_made.starred.base import *\n",
    "cfbench_made/starred/base.py": "BASE = 6\n",
    "cfbench_made/words/__init__.py": "def load():\n    return 1\n",
    "cfbench_made/words/words.txt": "good\n",
}

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from cfbench_core.lifecycle.code import closure
found = closure("cfbench_made.model:Model")
print(found.digest, ",".join(found.modules), ",".join(f"{n}={v}" for n, v in found.libraries.items()))
"""


@pytest.fixture()
def package(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def closure_of(folder: Path, cache: Path) -> tuple[str, list[str], list[str]]:
    """In a process of its own, since digests are computed once per process: digest, modules, libraries."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"CFBENCH_CACHE_DIR": str(cache)},
    )
    digest, modules, libraries = done.stdout.rstrip("\n").split(" ")
    return digest, modules.split(","), libraries.split(",")


def test_the_closure_holds_what_runs_and_the_libraries_by_minor_version(package: Path) -> None:
    import numpy as np

    _, modules, libraries = closure_of(package, package / "cache")
    made = [name for name in modules if name.startswith("cfbench_made")]
    assert made == [
        "cfbench_made.helper",
        "cfbench_made.lazy",
        "cfbench_made.model",
        "cfbench_made.shared.tool",
        "cfbench_made.starred",
        "cfbench_made.starred.base",
        "cfbench_made.words",
    ]
    assert f"numpy={'.'.join(np.__version__.split('.')[:2])}" in libraries


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("model.py", '"""A model."""', '"""Another docstring,\nlonger."""', False),
        ("model.py", '"""Its docstring."""', "", False),
        ("model.py", "# positive", "# a comment", False),
        ("model.py", 'summary="A model"', 'summary="A better model"', False),
        ("model.py", "class Model:", "\n\n\nclass Model:", False),
        ("helper.py", "FACTOR = 2", "FACTOR = 2  # two", False),
        ("helper.py", "    return FACTOR * x", '    """Scales."""\n\n    return FACTOR * x', False),
        ("typing_only.py", "tuple", "list", False),
        ("other.py", "1", "2", False),
        ("shared/rest.py", "4", "5", False),
        ("helper.py", "FACTOR = 2", "FACTOR = 3", True),
        ("helper.py", "FACTOR * x", "FACTOR + x", True),
        ("helper.py", "FACTOR = 2", "FACTOR = 2.0", True),
        ("model.py", "scale(1) > 0", "scale(1) > 1", True),
        ("lazy.py", "'b'", "'c'", True),
        ("shared/tool.py", "3", "4", True),
        ("starred/base.py", "6", "7", True),
        ("__init__.py", '"""A package."""', "import sys", True),
        ("words/words.txt", "good", "bad", True),
    ],
)
def test_only_edits_that_can_change_a_result_change_the_digest(
    package: Path, file: str, old: str, new: str, changes: bool
) -> None:
    before = closure_of(package, package / "cache")[0]
    path = package / "cfbench_made" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    after = closure_of(package, package / "cache")[0]
    assert (before != after) == changes


def test_digests_are_equal_with_a_cold_a_warm_and_a_damaged_cache(package: Path) -> None:
    cold = closure_of(package, package / "cache")
    warm = closure_of(package, package / "cache")
    (file,) = (package / "cache").glob("code-digests-*.json")
    file.write_text("{ damaged")
    assert cold == warm == closure_of(package, package / "cache") == closure_of(package, package / "empty")


GUARDED = "def f(x):\n{}    try:\n        return g(x)\n    except KeyError:\n        while True:\n            h(x)\n"


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (GUARDED.format(""), GUARDED.format('    """Its docstring."""\n'), False),
        (
            "def f(x):\n    with x:\n        yield\n",
            'def f(x):\n    "Doc."\n    with x:\n        yield\n',
            False,
        ),
        ("class A:\n    x = 1\n", 'class A:\n    """Its docstring."""\n\n    x = 1\n', False),
        ("def f(x): pass\n", 'def f(x):\n    """Its docstring."""\n', False),
        ("def f(x):\n    assert x > 0\n", 'def f(x):\n    """Doc."""\n    assert x > 0  # why\n', False),
        ("def f(x):\n    assert x > 0\n", "def f(x):\n    assert x > 1\n", True),
        ("def f(x):\n    if x: assert x > 0\n", "def f(x):\n    if x: assert x > 1\n", True),
        (GUARDED.format(""), GUARDED.format("").replace("KeyError", "OSError"), True),
        ("try:\n    f()\n    g()\nfinally:\n    h()\n", "try:\n    f()\nfinally:\n    h()\ng()\n", True),
    ],
)
def test_a_docstring_changes_no_digest_and_a_statement_does(before: str, after: str, changes: bool) -> None:
    assert (code_digest(before.encode()) != code_digest(after.encode())) == changes


@pytest.mark.parametrize("error", [OSError("full"), MemoryError()], ids=["disk", "memory"])
def test_digests_that_cannot_be_saved_are_computed_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(code_digests, "write_atomically", fails)
    code_digests._save_remembered()
