"""Verifies that what ``cfbench new-plugin`` writes works; for the tests of a suite that brings templates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from cfbench_core.plugin_template import NewPlugin, write
from cfbench_core.testing.checks import require

SECONDS = 300.0
"""The time limit of each command."""


def verify_rendered_plugin(
    kind: str, suite: str, folder: Path, name: str = "newcomer", run: bool = True
) -> None:
    """Writes a plugin, and runs its tests, ``cfbench check``, ruff (if it is installed) and its study.

    The plugin is made importable without installing it: its ``src`` and an entry point are on ``PYTHONPATH``.

    Args:
        kind, suite, name: of the component.
        folder: a new one, for the plugin, its cache and its run.
        run: whether the study is run, or only planned.

    Raises:
        Misbehaviour: if one of the commands fails; with its output.
    """
    plugin = NewPlugin(name, suite, f"Example of the kind {kind}", kind)
    root = folder / "plugin"
    write(plugin, root)
    info = root / "src" / f"{plugin.module}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {plugin.distribution}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[cfbench]\n{name} = {plugin.module}.plugin:PLUGIN\n")
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")]),
        "CFBENCH_CACHE_DIR": str(folder / "cache"),
    }
    cfbench = "import sys; from cfbench_core.cli import main; sys.exit(main())"
    study = (
        ["run", "study.yaml", "--output", str(folder / "run"), "--quiet"] if run else ["plan", "study.yaml"]
    )
    commands = [
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        [sys.executable, "-c", cfbench, "check", plugin.component],
        [sys.executable, "-c", cfbench, *study],
    ]
    ruff = shutil.which(
        "ruff", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )
    if ruff:
        commands += [[ruff, "check", "--no-cache", "."], [ruff, "format", "--no-cache", "--check", "."]]
    for command in commands:
        done = subprocess.run(
            command, cwd=root, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        shown = f"{done.stdout}\n{done.stderr}"[-4000:]
        require(done.returncode == 0, f"{' '.join(command[1:])} exits with {done.returncode}:\n{shown}")
