"""A web server on 127.0.0.1 that serves one file, and misbehaves on request."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Site:
    """What the server does.

    Attributes:
        content: of every path.
        headers: sent with it, for example an ETag.
        ranges: whether it answers range requests.
        break_after: for each request in turn, the bytes after which the connection is cut; None: not at all.
        stall: cut connections are left hanging, not closed.
        statuses: for each request in turn, a status in place of the content; 200: the content.
        redirect_to: every request is redirected to this address.
        requests: the headers of the requests that came.
    """

    content: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    ranges: bool = True
    break_after: list[int | None] = field(default_factory=list)
    stall: bool = False
    statuses: list[int] = field(default_factory=list)
    redirect_to: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    hang: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site, served while the context lasts; ``site.url`` is where."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, site)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/file"
    try:
        yield site
    finally:
        site.hang.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(handler: http.server.BaseHTTPRequestHandler, site: Site) -> None:
    number = len(site.requests)
    site.requests.append(dict(handler.headers))
    if site.redirect_to:
        handler.send_response(302)
        handler.send_header("Location", site.redirect_to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    status = site.statuses[number] if number < len(site.statuses) else 200
    if status != 200:
        handler.send_error(status)
        return
    start = _start(site, site.requests[number])
    if start is not None and start >= len(site.content):
        handler.send_error(416)
        return
    body = site.content[start or 0 :]
    handler.send_response(200 if start is None else 206)
    if start is not None:
        handler.send_header("Content-Range", f"bytes {start}-{len(site.content) - 1}/{len(site.content)}")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in site.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    limit = site.break_after[number] if number < len(site.break_after) else None
    handler.wfile.write(body if limit is None else body[:limit])
    handler.wfile.flush()
    if limit is not None and site.stall:
        site.hang.wait(10)


def _start(site: Site, headers: dict[str, str]) -> int | None:
    """Where a range request wants to begin; None where the whole is due."""
    found = re.fullmatch(r"bytes=(\d+)-", headers.get("Range", ""))
    unchanged = headers.get("If-Range", "") in site.headers.values()
    return int(found[1]) if found and site.ranges and unchanged else None
