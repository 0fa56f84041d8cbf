"""Fresh environments, made from the wheels that ``nox -s wheels`` built."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment and a working directory of its own, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.variables = {
            **os.environ,
            "CFBENCH_CACHE_DIR": str(folder / "cache"),
            "NO_COLOR": "1",
            "COLUMNS": "160",
        }
        self.variables.pop("CFBENCH_DATA_DIR", None)

    def python(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self._run("python", *arguments)

    def cfbench(self, *arguments: str | Path, data: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs ``cfbench`` with ``arguments``; ``data`` becomes CFBENCH_DATA_DIR."""
        extra = {"CFBENCH_DATA_DIR": str(data)} if data else {}
        return self._run("cfbench", *arguments, extra=extra)

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Runs a line of a page in a shell in which the environment is active."""
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{self.variables['PATH']}"
        variables = {**self.variables, "PATH": path, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
        return subprocess.run(
            ["bash", "-c", line], cwd=self.work, env=variables, capture_output=True, text=True, timeout=600
        )

    def install(self, *requirements: str | Path) -> None:
        # Python compiles what is imported, a fraction of what is installed.
        options = ("--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
        done = self._run("python", "-m", "pip", "install", *options, *requirements)
        assert done.returncode == 0, done.stderr

    def _run(
        self, program: str, *arguments: str | Path, extra: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "venv" / "bin" / program), *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=self.work,
            env={**self.variables, **(extra or {})},
            capture_output=True,
            text=True,
            timeout=1200,
        )


def wheel(distribution: str) -> Path:
    """The built wheel of a distribution; the test is skipped, with the reason, where there is none."""
    folder = os.environ.get("CFBENCH_WHEELS")
    if not folder:
        pytest.skip("CFBENCH_WHEELS is not set: run through nox -s e2e")
    return sorted(Path(folder).glob(f"{distribution.replace('-', '_')}-*.whl"))[-1]


@pytest.fixture(scope="session")
def remove() -> Iterator[Callable[[Path], None]]:
    """Removes a folder while the next tests run, which on some machines takes a minute."""
    script = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"
    started: list[subprocess.Popen[bytes]] = []
    yield lambda folder: started.append(subprocess.Popen([sys.executable, "-c", script, folder]))
    for process in started:
        process.wait()


@pytest.fixture(scope="module")
def environment_with(
    tmp_path_factory: pytest.TempPathFactory, remove: Callable[[Path], None]
) -> Iterator[Callable[..., Environment]]:
    """Makes (once for each list) an environment in which some distributions are installed from their wheels.

    Environments with torch take more than a gigabyte each, so they are removed after the tests of a file.
    """
    made: dict[tuple[str, ...], Environment] = {}

    def make(*distributions: str) -> Environment:
        if distributions not in made:
            environment = Environment(tmp_path_factory.mktemp("-".join(distributions)))
            environment.install(*(wheel(name) for name in distributions))
            made[distributions] = environment
        return made[distributions]

    yield make
    for environment in made.values():
        remove(environment.folder)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data; skipped with the reason where there is none."""
    folder = Path(os.environ.get("CFBENCH_DATA_DIR", ROOT.parent / "shared" / "data"))
    if not (folder / "recsys").is_dir():
        pytest.skip(f"no real data: {folder}/recsys is not there (set CFBENCH_DATA_DIR)")
    return folder
