"""What is computed with code that is imported in an unusual way: an edit that changes a number changes the digest."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cfbench_core.lifecycle.code_digests import code_digest, imports

ONE, TWO = "def f():\n    return 1\n", "def f():\n    return 2\n"
CALL = "def value():\n    return f()\n"

STATEMENTS = {
    "after-a-semicolon": f"import os; from HELPER import f\n{CALL}",
    "after-a-colon": f"if True: from HELPER import f\n{CALL}",
    "in-a-function-of-one-line": "def value(): from HELPER import f; return f()\n",
    "in-try-of-one-line": f"try: from HELPER import f\nexcept ImportError: f = None\n{CALL}",
    "continued-names": f"from HELPER import \\\n    f\n{CALL}",
    "continued-module": f"from \\\n    HELPER import f\n{CALL}",
    "continued-list": "import os, \\\n    HELPER\ndef value():\n    return HELPER.f()\n",
    "comment-with-a-parenthesis": f"from HELPER import (  # see (1)\n    f,\n)\n{CALL}",
    "byte-order-mark": f"\ufefffrom HELPER import f\n{CALL}",
    "form-feed": f"\x0cfrom HELPER import f\n{CALL}",
    "old-line-ends": f"import os\rfrom HELPER import f\r{CALL}".replace("\n", "\r"),
    "import_module": 'import importlib\nf = importlib.import_module("HELPER").f\n' + CALL,
    "__import__": f'f = __import__("HELPER").f\n{CALL}',
    "else-of-typing": (
        "from typing import TYPE_CHECKING\n"
        f"if TYPE_CHECKING:\n    import os\nelse:\n    from HELPER import f\n{CALL}"
    ),
}
"""Ways to import f from a helper, which is edited."""

PACKAGES = {
    "folder-without-init": ("from PACKAGE import edited\n", {}),
    "sibling-in-a-folder-without-init": (
        "from PACKAGE.user import edited\n",
        {"user": "from . import edited\n"},
    ),
    "re-exported-name-is-wrapped": (
        "from PACKAGE import wrapped as edited\n",
        {
            "__init__": "from .plain import wrapped\nfrom .edited import f\nwrapped.f = staticmethod(f)\n",
            "plain": "class wrapped:\n    pass\n",
        },
    ),
    "init-sets-what-a-module-reads": (
        "from PACKAGE import user as edited\n",
        {
            "__init__": "from . import state\nfrom .edited import f\nstate.number = f()\n",
            "state": "number = 0\n",
            "user": "from . import state\ndef f():\n    return state.number\n",
        },
    ),
}
"""Statement of the main module, and modules of a package next to the one that is edited."""

BODIES = {
    "metadata-with-a-comment": "SPEC = ComponentSpec()  # noqa\n{}\nX = dict(\n    a=1,\n)\n",
    "metadata-in-a-list": "SPECS = [\n    ComponentSpec(),\n]\n{}\nX = dict(\n    a=1,\n)\n",
    "metadata-in-a-tuple": "SPECS = (\n    ComponentSpec(),\n)\n{}",
}
DEFINED = "class ComponentSpec:\n    pass\n"
EDITED = {name: tuple(DEFINED + body.format(f) for f in (ONE, TWO)) for name, body in BODIES.items()} | {
    "only-without-optimization": tuple(
        f"def f():\n    if __debug__:\n        return {number}\n" for number in (1, 2)
    ),
    "constants-called-like-metadata": tuple(
        f"SPEC = dict(\n    number={number},\n)\ndef f():\n    return SPEC['number']\n" for number in (1, 2)
    ),
}
"""A helper before and after an edit."""

SCRIPT = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from cfbench_core.lifecycle.code import closure
names = json.loads(sys.argv[2])
print(json.dumps({n: [closure(f"{n}_main:value").digest, importlib.import_module(f"{n}_main").value()] for n in names}))
"""


def key(case: str) -> str:
    return "case_" + case.replace("-", "_")


def write(folder: Path, edited: bool) -> list[str]:
    for case, main in STATEMENTS.items():
        (folder / f"{key(case)}_main.py").write_bytes(main.replace("HELPER", f"{key(case)}_helper").encode())
        (folder / f"{key(case)}_helper.py").write_text(TWO if edited else ONE)
    for case, (statement, modules) in PACKAGES.items():
        package = folder / f"{key(case)}_package"
        package.mkdir(exist_ok=True)
        main = f"{statement.replace('PACKAGE', package.name)}def value():\n    return edited.f()\n"
        (folder / f"{key(case)}_main.py").write_text(main)
        for name, content in {**modules, "edited": TWO if edited else ONE}.items():
            (package / f"{name}.py").write_text(content)
    for case, versions in EDITED.items():
        (folder / f"{key(case)}_main.py").write_text(f"from {key(case)}_helper import f\n{CALL}")
        (folder / f"{key(case)}_helper.py").write_text(versions[edited])
    return [key(case) for case in (*STATEMENTS, *PACKAGES, *EDITED)]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[str, int]]]:
    """Digest and computed number of each case, before and after the edit; each time in another process."""
    found = []
    for edited in (False, True):
        folder = tmp_path_factory.mktemp("code")
        command = [sys.executable, "-B", "-c", SCRIPT, str(folder), json.dumps(write(folder, edited))]
        environment = os.environ | {"CFBENCH_CACHE_DIR": str(folder / "cache")}
        done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)
        found.append(json.loads(done.stdout))
    return found


@pytest.mark.parametrize("case", [*STATEMENTS, *PACKAGES, *EDITED])
def test_an_edit_that_changes_a_number_changes_the_digest(
    versions: list[dict[str, tuple[str, int]]], case: str
) -> None:
    (digest, number), (edited_digest, edited_number) = (version[key(case)] for version in versions)
    assert (number, edited_number) == (1, 2)  # as Python imports it
    assert digest != edited_digest


@pytest.mark.parametrize("source", [b"x = " + b"-" * 100_000 + b"1", b"x = 1" + b" + 1" * 100_000])
def test_a_file_that_python_cannot_compile_counts_as_it_stands(source: bytes) -> None:
    assert imports(b"import json\n" + source) == ()
    assert code_digest(source) == hashlib.sha256(source).hexdigest()
