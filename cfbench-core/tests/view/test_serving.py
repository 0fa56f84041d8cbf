"""The server as a process: its address, one page, and its end by Ctrl-C in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from made_up_run import write_run

pytest.importorskip("uvicorn")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to one process")
def test_ctrl_c_ends_the_server_in_one_line(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", users=4)
    command = [sys.executable, "-m", "cfbench_core", "view", str(directory), "--no-browser"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and "?token=" in address
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{address.split('?')[0]}api/runs", timeout=60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert "Traceback" not in err and len((out + err).splitlines()) <= 2, out + err
    assert child.returncode in (0, 130)


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    import socket

    from cfbench_core import view
    from cfbench_core.errors import UserError

    directory = write_run(tmp_path / "run", users=4)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: cannot be used"):
            view.serve(directory, port=port, browser=False)
