"""Commands on poor terminals, in broken pipes, in folders that are gone, and ended by signals."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from child_processes import popen

from cfbench_core.cli import root

from .test_cli_run import CFBENCH, change_study, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell and signals")


def called(toy: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A command line in a process of its own."""
    command = [sys.executable, "-c", CFBENCH, *arguments]
    return subprocess.run(command, capture_output=True, env={**environment(toy), **variables}, timeout=120)


def in_shell(toy: Path, line: str) -> subprocess.CompletedProcess[str]:
    """``cfbench`` in a line of bash stands for the command."""
    script = f'cfbench() {{ "{sys.executable}" -c "{CFBENCH}" "$@"; }}\n{line}'
    variables = environment(toy)
    variables["PYTHONPATH"] = variables["PYTHONPATH"].strip(
        os.pathsep
    )  # an empty entry is the current folder
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=variables, timeout=120)


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, marks=pytest.mark.slow),
    ],
)
def test_a_terminal_that_knows_only_ascii_gets_ascii(toy: Path, variables: dict[str, str]) -> None:
    done = called(toy, "run", "study.yaml", "--output", "runs/one", **variables)
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.decode("ascii"), done.stderr.decode("ascii")
    assert "5.5 +/-1.3" in out and "sum v" in out
    assert "1 recommender - 1 explainer - seed 0" in err
    shown = called(toy, "report", "runs/one", **variables)
    assert shown.returncode == 0 and b"+/-1.3" in shown.stdout


@pytest.mark.slow
def test_json_for_a_terminal_that_knows_only_ascii_loses_nothing(toy: Path) -> None:
    change_study(toy, '[{name: digits, label: "Nóbrega ±"}]')
    for encoding in ("ascii", "utf-8"):
        done = called(toy, "plan", "study.yaml", "--format", "json", PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        assert "Nóbrega ±" in str(json.loads(done.stdout.decode(encoding)))


@pytest.mark.parametrize(
    "redirection",
    [
        "| head -1",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("2>&1 | head -1", "2>&1 | true", ">&-", ">&- 2>&-")
        ),
    ],
)
def test_a_run_that_nobody_reads_any_more_goes_on_to_its_end(toy: Path, redirection: str) -> None:
    done = in_shell(toy, f"set -o pipefail; cfbench run study.yaml --output runs/one {redirection}")
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr and "Traceback" not in done.stderr
    assert (toy / "runs/one/report.html").exists()


def test_a_full_standard_output_is_one_line(toy: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    done = in_shell(toy, "cfbench plan study.yaml > /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["No space left on device"]


def test_a_working_directory_that_is_gone_is_one_line(toy: Path) -> None:
    done = in_shell(toy, f"mkdir gone; cd gone; rmdir ../gone; cfbench run {toy}/study.yaml")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "the current folder does not exist any more; change to another one (cd)"
    ]


@pytest.mark.slow
def test_a_folder_whose_name_is_not_utf8_is_refused_before_anything_is_computed(toy: Path) -> None:
    folder = toy / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    shutil.copy(toy / "study.yaml", folder)
    done = subprocess.run(
        [sys.executable, "-c", CFBENCH, "run", "study.yaml"],
        cwd=folder,
        capture_output=True,
        env=environment(toy),
        timeout=120,
    )
    assert done.returncode == 2
    (line,) = done.stderr.decode("utf-8").splitlines()
    assert "caf\\udce9/runs" in line and "not in UTF-8; rename it, or choose another folder" in line
    assert not (toy.parent / "cache" / "artifacts").exists()
    done = called(toy, "run", "study.yaml", CFBENCH_CACHE_DIR=str(folder))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert b"not in UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_and_its_workers_and_leaves_nothing(toy: Path, number: int, code: int) -> None:
    change_study(toy, "[{name: digits, misbehave: 'wait:go'}]")
    command = [
        sys.executable,
        "-c",
        CFBENCH,
        "run",
        "study.yaml",
        "--output",
        "runs/one",
        "--executor",
        "process",
    ]
    temporary = toy.parent / "cache" / "artifacts" / "tmp"
    with popen(command, env=environment(toy), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        deadline = time.monotonic() + 60
        while not (
            temporary.exists() and list(temporary.iterdir()) and (toy / "runs/one/plan.json").exists()
        ):
            assert time.monotonic() < deadline and run.poll() is None
            time.sleep(0.02)
        run.send_signal(number)
        _, err = run.communicate(timeout=20)
    assert run.returncode == code
    assert err.decode().splitlines()[-1] == "stopped; the same command resumes"
    assert b"Traceback" not in err
    assert list(temporary.iterdir()) == []
    (toy / "go").touch()
    done = called(toy, "run", "study.yaml", "--output", "runs/one", "--executor", "process")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_cursor_is_shown_again_after_a_signal(toy: Path, number: int) -> None:
    change_study(toy, "[{name: digits, misbehave: 'wait:go'}]")
    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-c",
        CFBENCH,
        "run",
        "study.yaml",
        "--output",
        "runs/one",
        "--executor",
        "process",
    ]
    run = popen(command, env=environment(toy), stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    deadline = time.monotonic() + 60
    while b"explain" not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([leader], [], [], 0.1)[0]:
            seen += os.read(leader, 65536)
    assert b"\x1b[?25l" in seen
    run.send_signal(number)
    while time.monotonic() < deadline:
        try:
            part = os.read(leader, 65536) if select.select([leader], [], [], 0.1)[0] else b""
        except OSError:  # Linux: the other end is closed
            break
        seen += part
        if not part and run.poll() is not None:
            break
    os.close(leader)
    assert run.wait(timeout=20) == 128 + number
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")


@pytest.mark.slow
def test_under_nohup_a_run_survives_the_end_of_its_terminal(toy: Path) -> None:
    change_study(toy, "[{name: digits, misbehave: 'wait:go'}]")
    script = 'trap "" HUP; exec "$@"'
    command = [
        "bash",
        "-c",
        script,
        "bash",
        sys.executable,
        "-c",
        CFBENCH,
        "run",
        "study.yaml",
        "--output",
        "runs/one",
    ]
    with popen(command, env=environment(toy), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        deadline = time.monotonic() + 60
        while not (toy / "runs/one/plan.json").exists():
            assert time.monotonic() < deadline and run.poll() is None
            time.sleep(0.02)
        run.send_signal(signal.SIGHUP)
        (toy / "go").touch()
        run.communicate(timeout=60)
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("run x", "stopped; the same command resumes"),
        ("run x --fresh", "stopped; without --fresh the same command uses what is finished"),
        ("tune x --restart", "stopped; without --restart the same command uses what is finished"),
        ("list explainers", "stopped"),
    ],
)
def test_what_a_stopped_command_says_is_how_it_goes_on(
    call: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(root.cli, "main", interrupted)
    assert root.main(call.split()) == 130
    assert capsys.readouterr().err.splitlines() == [said]
