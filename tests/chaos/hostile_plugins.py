"""Explainers that change, break or exhaust what they can reach, together and alone.

Each is a module next to the configuration, named with ``import:``. It runs in a study with explainers of the project, whose
numbers must be those of a study without it, in the same run and when a later run reads the cache.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil
from trial import Budget, Trial

NAME = "hostile plugins"
OWN = ("jaccard", "random")
TOGETHER = 6
SECONDS = 180
"""After which a run counts as hanging."""

COMMAND = "import sys; from cfbench_core.cli import main; sys.exit(main())"

MARK = "CFBENCH_CHAOS"
"""The environment variable by which processes that a study left behind are found."""


@dataclass(frozen=True)
class Plugin:
    """A hostile explainer.

    Attributes:
        name: of its module, after "hostile_".
        body: of its method ``importances``, which has ``targets``, ``context`` and ``np``.
        status: of its cell: "failed" (which includes timeouts and lack of memory), "ok", or "any".
        top: code at the top of the module.
    """

    name: str
    body: str
    status: str = "failed"
    top: str = ""


ONES = "return np.ones(targets.history.shape)"
WRITE = """
def write(array):
    array.flags.writeable = True
    array[...] = 7
"""

PLUGINS = (
    # Inputs that others use
    Plugin(
        "writes_model",
        "for a in arrays(context.model._model): write(a)\n" + ONES,
        top=WRITE
        + """
def arrays(model):
    return [a for a in vars(model).values() if isinstance(a, np.ndarray)]
""",
    ),
    Plugin(
        "replaces_weights",
        "m = context.model._model\nfor n in list(vars(m)):\n"
        "    if isinstance(vars(m)[n], np.ndarray): setattr(m, n, vars(m)[n] * 0 + 1)\n" + ONES,
    ),
    Plugin("writes_interactions", "write(context.interactions.data)\n" + ONES, top=WRITE),
    Plugin("writes_indices", "write(context.interactions.indices)\n" + ONES, top=WRITE),
    Plugin("writes_read_only", "context.interactions.data[:] = 7\n" + ONES),
    Plugin("writes_training", "context.training.data[:] = 7\n" + ONES),
    Plugin("writes_history", "write(targets.history)\n" + ONES, top=WRITE),
    Plugin("writes_items", "write(targets.items)\n" + ONES, top=WRITE),
    Plugin("writes_by_torch", "import torch\ntorch.from_numpy(context.interactions.data).mul_(3)\n" + ONES),
    Plugin("replaces_matrix", "m = context.interactions\nm.data = m.data * 2\n" + ONES),
    # Functions and settings that others use
    Plugin("patches_argsort", "np.argsort = lambda a, *r, **k: np.zeros(len(a), dtype=int)\n" + ONES),
    Plugin("patches_builtin", "import builtins\nbuiltins.sorted = lambda a, **k: list(a)\n" + ONES),
    Plugin(
        "patches_model_class", "t = type(context.model._model)\nt.score_profiles = lambda *a: 1 / 0\n" + ONES
    ),
    Plugin(
        "patches_metric", "import cfbench_core.lifecycle.tables as t\nt.write_explanations = None\n" + ONES
    ),
    Plugin("patches_at_import", ONES, top="np.sort = lambda a, *r, **k: a\n"),
    Plugin("seeds", "import random\nrandom.seed(0); np.random.seed(0)\n" + ONES, "ok"),
    Plugin(
        "settings",
        "import os, warnings, locale, logging, sys\nnp.seterr(all='raise')\nos.environ.clear()\n"
        "os.chdir('/')\nwarnings.simplefilter('error')\nlogging.disable(50)\nsys.path.clear()\n"
        "sys.setrecursionlimit(5000)\nos.umask(0o777)\n" + ONES,
        "any",
    ),
    Plugin(
        "torch_settings",
        "import torch\ntorch.set_default_dtype(torch.float16)\n"
        "torch.use_deterministic_algorithms(True)\ntorch.set_grad_enabled(False)\n" + ONES,
        "ok",
    ),
    Plugin(
        "ignores_signals",
        "import signal\nfor n in (1, 2, 15):\n    signal.signal(n, signal.SIG_IGN)\n" + ONES,
        "ok",
    ),
    # Exceptions
    Plugin("surrogate", r"raise ValueError('\ud800')"),
    Plugin(
        "unshowable",
        "raise Unshowable",
        top="class Unshowable(Exception):\n"
        "    def __str__(self): raise RuntimeError('no')\n    __repr__ = __str__\n",
    ),
    Plugin("base_exception", "class Mine(BaseException): pass\nraise Mine('mine')"),
    Plugin("generator_exit", "raise GeneratorExit"),
    Plugin("keyboard_interrupt", "raise KeyboardInterrupt"),
    Plugin("system_exit", "raise SystemExit(0)"),
    Plugin("stop_iteration", "raise StopIteration"),
    Plugin("long_message", "raise ValueError('x' * 5_000_000)"),
    Plugin("escape_sequences", r"raise ValueError('\x1b[2J\x1b]0;title\x07 \u202e')"),
    Plugin("no_json", "raise ValueError(object(), b'\\xff', lambda: 0)"),
    Plugin("chained", "try: 1 / 0\nexcept Exception as e: raise ValueError('second') from e"),
    # Processes
    Plugin("exits", "import os\nos._exit(0)"),
    Plugin("kills_itself", "import os\nos.kill(os.getpid(), 9)"),
    Plugin("crashes", "import ctypes\nctypes.string_at(0)"),
    Plugin("aborts", "import os\nos.abort()"),
    Plugin("forks", "import os\nos.fork()\n" + ONES, "any"),
    Plugin(
        "leaves_child",
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n" + ONES,
        "ok",
    ),
    Plugin(
        "leaves_daemon",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n    os._exit(0)\n" + ONES,
        "ok",
    ),
    Plugin(
        "leaves_daemon_and_dies",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n    os._exit(0)\nos._exit(3)",
    ),
    Plugin(
        "thread_goes_on",
        "import threading, time\nd = context.interactions.data\ndef run():\n    time.sleep(0.2)\n"
        "    while True:\n        d.flags.writeable = True; d[:] = 9; time.sleep(0.01)\n"
        "threading.Thread(target=run, daemon=True).start()\n" + ONES,
        "any",
    ),
    Plugin("atexit", "import atexit, time\natexit.register(time.sleep, 600)\n" + ONES, "ok"),
    Plugin(
        "blocks_at_exit",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + ONES,
        "ok",
    ),
    # Output
    Plugin("prints", r"for _ in range(300): print('\x1b[31m' + 'y' * 100_000)" + "\n" + ONES, "ok"),
    Plugin("closes_streams", "import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\n" + ONES, "any"),
    Plugin("closes_everything", "import os\nos.closerange(0, 64)\n" + ONES),
    Plugin(
        "writes_everywhere",
        "import os\nfor n in range(1, 64):\n    try: os.write(n, b'{\"event\": 3}\\n')\n"
        "    except OSError: pass\n" + ONES,
        "any",
    ),
    Plugin(
        "forges_success",
        "import os, json\no = json.dumps(dict(status='ok'))\n"
        "m = json.dumps(dict(event='finished', outcome=o, unfit=False)) + '\\n'\nfor n in range(3, 64):\n"
        "    try: os.write(n, m.encode())\n    except OSError: pass\nos._exit(0)",
    ),
    # Files
    Plugin(
        "deletes_task_folder",
        "import shutil\nfor p in temporary(): shutil.rmtree(p)\n" + ONES,
        top="""
import os
from pathlib import Path
ROOT = Path(os.environ['CFBENCH_CACHE_DIR']) / 'artifacts'
def temporary():
    return [p for p in (ROOT / 'tmp').glob('*') if p.is_dir()]
""",
    ),
    Plugin(
        "deletes_cache",
        "import shutil, os\nfrom pathlib import Path\n"
        "for p in (Path(os.environ['CFBENCH_CACHE_DIR']) / 'artifacts').glob('*/??'): shutil.rmtree(p)\n"
        + ONES,
        "any",
    ),
    Plugin(
        "damages_cache",
        "import os\nfrom pathlib import Path\n"
        "for p in (Path(os.environ['CFBENCH_CACHE_DIR']) / 'artifacts').glob('model/*/*/*'):\n"
        "    p.write_bytes(b'x' * p.stat().st_size)\n" + ONES,
        "any",
    ),
    # Resources
    Plugin("sleeps", "import time\ntime.sleep(600)"),
    Plugin("sleeps_in_c", "import ctypes\nctypes.CDLL(None).sleep(600)"),
    Plugin("stops_itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    Plugin("allocates", "held = []\nwhile True: held.append(np.ones(3_000_000))"),
    Plugin("recurses", "def f(): return f()\nreturn f()"),
    Plugin(
        "recurses_in_c",
        "import sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**6): x = [x]\nreturn repr(x)",
    ),
    # Answers
    Plugin("returns_nothing", "return None"),
    Plugin("returns_nan", "return np.full(targets.history.shape, np.nan)"),
    Plugin("returns_complex", "return np.full(targets.history.shape, 1j)"),
    Plugin("returns_objects", "return np.full(targets.history.shape, object())"),
    Plugin("returns_generator", "return (i for i in iter(int, 1))"),
    Plugin("returns_shape", "return np.ones((3, 1))"),
    Plugin("returns_text", "return np.full(targets.history.shape, 'much')"),
)

MINIMUM = 2 * len(PLUGINS)


def trials(budget: Budget) -> Iterator[Trial]:
    """All plugins, a few in a run, then each alone."""
    order = list(PLUGINS)
    budget.random.shuffle(order)
    groups = [order[start : start + TOGETHER] for start in range(0, len(order), TOGETHER)]
    expected = Study(budget.folder / "none", ()).run().scores()
    done = 0
    for group in [*groups, *([plugin] for plugin in order)]:
        study = Study(budget.folder / str(done), group)
        problems = study.check(expected)
        for plugin in group:
            if done < budget.trials:
                done += 1
                others = ", ".join(other.name for other in group if other is not plugin)
                case = f"{plugin.name} with {others}" if others else f"{plugin.name} alone"
                yield Trial(case, "; ".join([*problems, *study.problems_of(plugin)]))
        if done >= budget.trials:
            return


class Study:
    """A study with some hostile plugins, in a folder of its own."""

    def __init__(self, folder: Path, plugins: Sequence[Plugin]) -> None:
        self.folder = folder
        self.plugins = plugins
        self.token = f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
        self.code: int | None = 0
        self.output = ""
        folder.mkdir(parents=True)
        for plugin in plugins:
            (folder / f"hostile_{plugin.name}.py").write_text(module_of(plugin), encoding="utf-8")
        self.write_configuration("study.yaml", plugins)
        self.write_configuration("own.yaml", ())

    def write_configuration(self, name: str, plugins: Sequence[Plugin]) -> None:
        hostile = [{"import": f"hostile_{plugin.name}:Bad", "label": plugin.name} for plugin in plugins]
        document = {
            "suite": "recsys",
            "data": {"name": "synthetic", "users": 60, "items": 40, "interactions": 500},
            "recommenders": ["item-knn"],
            "explainers": [*hostile, *OWN],
            "protocol": {"k": [3], "level": ["item"], "format": ["implicit"], "users": 12},
            "metrics": ["pos-p"],
            "workers": 2,
            "limits": {"seconds": 12, "memory_gb": 0.8},
        }
        (self.folder / name).write_text(json.dumps(document), encoding="utf-8")

    def run(self, configuration: str = "study.yaml", out: str = "run") -> Study:
        environment = {
            **os.environ,
            "CFBENCH_CACHE_DIR": str(self.folder / "cache"),
            "OMP_NUM_THREADS": "1",
            MARK: self.token,
        }
        command = [sys.executable, "-c", COMMAND, "run", configuration, "--output", out]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
            self.code, self.output = process.returncode, output.decode("utf-8", "backslashreplace")
        except subprocess.TimeoutExpired:
            self.code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return self

    def scores(self, out: str = "run") -> list[tuple[object, ...]]:
        """The rows of the project's own explainers, sorted."""
        table = pd.read_parquet(self.folder / out / "scores.parquet")
        own = table[table["explainer"].isin(OWN) & (table["metric"] != "time")]
        return sorted(own[["explainer", "metric", "unit", "value"]].itertuples(index=False, name=None))

    def check(self, expected: list[tuple[object, ...]]) -> list[str]:
        """What is wrong with the run as a whole."""
        problems = []
        self.run()
        problems += self._end("the run")
        if self.code is not None and self.scores() != expected:
            problems.append("the numbers of other explainers differ")
        first = self.code
        self.run("own.yaml", "own")
        problems += self._end("the run from the cache")
        if self.code is not None and self.scores("own") != expected:
            problems.append("a later run has other numbers")
        if self.code not in (0, None):
            problems.append(f"a later run without the plugins ends with {self.code}")
        should_fail = any(plugin.status == "failed" for plugin in self.plugins)
        if should_fail and first != 1:
            problems.append(f"the exit code is {first}")
        left = [p for p in (self.folder / "cache" / "artifacts" / "tmp").glob("*") if p.is_dir()]
        if left:
            problems.append(f"{len(left)} folders are left over")
        size = sum(p.stat().st_size for p in (self.folder / "run").rglob("*") if p.is_file())
        if size > 15_000_000:
            problems.append(f"the run directory has {size / 1e6:.0f} MB")
        return problems

    def _end(self, what: str) -> list[str]:
        problems = []
        if self.code is None:
            problems.append(f"{what} hangs")
        elif self.code not in (0, 1):
            problems.append(f"{what} ends with {self.code}: {self.output[-300:]!r}")
        if "Traceback (most recent call last)" in self.output:
            problems.append(f"{what} prints a traceback")
        if re.search("[\x00-\x08\x0b-\x1f\x7f]", self.output.replace("\r\n", "\n")):
            problems.append(f"{what} prints control characters")
        orphans = self._orphans()
        if orphans:
            problems.append(f"{what} leaves processes: {', '.join(orphans)}")
        return problems

    def _orphans(self) -> list[str]:
        """Processes of the study that still run; they are ended."""
        deadline = time.monotonic() + 3
        while True:
            found = []
            for process in psutil.process_iter():
                try:
                    if process.environ().get(MARK) == self.token and process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process)
                except (psutil.Error, OSError):
                    continue
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        for process in found:
            process.kill()
        return [str(process.pid) for process in found]

    def problems_of(self, plugin: Plugin) -> list[str]:
        """What is wrong with the cell of one plugin."""
        plan = self.folder / "run" / "plan.json"
        if not plan.exists():
            return ["there is no plan.json"]
        cell = next(c for c in json.loads(plan.read_text("utf-8"))["cells"] if c["explainer"] == plugin.name)
        status = "ok" if cell["status"] in ("ok", "cached") else "failed"
        problems = []
        if cell["status"] in ("planned", "skipped") or plugin.status not in ("any", status):
            problems.append(f"its cell is {cell['status']} ({cell['reason'][:200]})")
        if status == "failed" and (
            not cell["reason"] or "\n" in cell["reason"] or len(cell["reason"]) > 2000
        ):
            problems.append(f"its reason is no short line: {cell['reason'][:200]!r}")
        return problems


def module_of(plugin: Plugin) -> str:
    """The source of a plugin's module."""
    body = plugin.body.replace("\n", "\n        ")
    return f'''import numpy as np
{plugin.top}
class Bad:
    """A hostile explainer."""

    provides = {{"format": {{"implicit"}}, "level": {{"item"}}, "scope": {{"user-vector"}}}}

    def __init__(self, config):
        pass

    def importances(self, targets, context):
        {body}
'''
