"""Serves the viewer on this machine until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Sequence

import click

from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run

HOST = "127.0.0.1"


def serve_runs(runs: Sequence[Run], port: int = 0, browser: bool = True) -> None:
    """See :func:`cfbench_core.view.serve`."""
    try:
        import uvicorn

        from cfbench_core.view.app import application
        from cfbench_core.view.live import LiveModels
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette"):
            raise
        raise UserError(f"{error.name} is not installed: pip install 'cfbench-core[view]'") from None

    token, live = secrets.token_urlsafe(24), LiveModels()
    listening = _listening(port)
    address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
    app = application(runs, token, live)
    warming = threading.Thread(target=app.state.views.warm, daemon=True)
    warming.start()
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    server = uvicorn.Server(config)
    click.echo(f"{address}\nCtrl-C ends the viewer.")
    if browser:
        _open_when_ready(address)
    try:
        server.run(sockets=[listening])
    finally:
        live.close()
        listening.close()
        warming.join(timeout=10)  # Arrow aborts a process that exits during one of its reads


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"--port {port}: cannot be used ({error.strerror}); without it a free one is chosen"
        ) from None
    listening.listen(64)  # a browser that comes before the server is ready waits here
    return listening


def _open_when_ready(address: str) -> None:
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
