"""The HTTP application of the viewer: read-only JSON of runs, and the page that shows it.

Every request needs the token: once in the address, which sets a cookie, then the cookie. The Host header must be the
address of this machine, so that no page of another site can reach the server by a name of its own.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run
from cfbench_core.view.live import LiveModels
from cfbench_core.view.pages import static_file
from cfbench_core.view.progress import progress
from cfbench_core.view.queries import RunView, comparison
from cfbench_core.view.viewers import Constraints

HOSTS = ("127.0.0.1", "localhost")
COOKIE = "cfbench_view"
MOST_BYTES = 1_000_000
"""Of the body of a request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FILES = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
    "/blocks.js": ("blocks.js", "text/javascript"),
    "/constraints.js": ("constraints.js", "text/javascript"),
    "/pages.js": ("pages.js", "text/javascript"),
    "/view.css": ("view.css", "text/css"),
    "/report.css": ("report.css", "text/css"),
}


class Guard(BaseHTTPMiddleware):
    """Refuses requests without the token, or by another name than this machine's."""

    def __init__(self, app: Any, token: str) -> None:
        super().__init__(app)
        self.token = token

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = self._refusal(request) or await self._passed(request, call_next)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    def _refusal(self, request: Request) -> Response | None:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname
        if host not in HOSTS:
            return PlainTextResponse("this server answers at 127.0.0.1 only", 400)
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return PlainTextResponse("requests of other sites are refused", 403)
        return None

    async def _passed(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        cookie = f"{COOKIE}_{request.url.port or 80}"  # cookies are shared by all ports of a host
        given = request.query_params.get("token")
        if given is not None and self._valid(given):
            response: Response = RedirectResponse(request.url.path, 303)
            response.set_cookie(cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        if not self._valid(request.cookies.get(cookie, "")):
            return PlainTextResponse("open the address that 'cfbench view' printed; it has a token", 403)
        return await call_next(request)

    def _valid(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


class Views:
    """The runs that are shown; one whose plan changes (it is still running) is read again."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.directories = [run.directory for run in runs]
        self._views: dict[int, tuple[int, RunView]] = {}

    def __len__(self) -> int:
        return len(self.directories)

    def __getitem__(self, number: int) -> RunView:
        if not 0 <= number < len(self):
            raise UserError(f"no run {number}: there are {len(self)}, from 0")
        directory = self.directories[number]
        changed = (directory / "plan.json").stat().st_mtime_ns
        known = self._views.get(number)
        if known is None or known[0] != changed:
            known = self._views[number] = changed, RunView(Run(directory))
        return known[1]

    def warm(self) -> None:
        """Reads the first run's tables, so that the first page does not wait for it."""
        with contextlib.suppress(UserError):  # a page shows it
            self[0].overview(significance=False)


def application(runs: Sequence[Run], token: str, live: LiveModels | None = None) -> Starlette:
    """The application for some runs; ``token`` must accompany every request."""
    views, models = Views(runs), live or LiveModels()

    def listed(_: Mapping[str, str]) -> Any:
        return {"live": True, "runs": [views[number].heading() for number in range(len(views))]}

    def overview(given: Mapping[str, str]) -> Any:
        return views[_number(given, "run")].overview(significance=given.get("quick") != "1")

    def so_far(given: Mapping[str, str]) -> Any:
        return progress(views[_number(given, "run")].run.directory)

    def units(given: Mapping[str, str]) -> Any:
        return views[_number(given, "run")].units(
            _number(given, "cell"),
            given.get("sort", ""),
            given.get("desc") == "1",
            given.get("q", ""),
            _number(given, "page", 0),
            _number(given, "size", 50),
        )

    def unit(given: Mapping[str, str]) -> Any:
        return views[_number(given, "run")].unit(_number(given, "table"), given.get("unit", ""))

    def disagreement(given: Mapping[str, str]) -> Any:
        page = _number(given, "page", 0)
        return views[_number(given, "run")].disagreement(
            _number(given, "table"), given.get("metric", ""), page
        )

    def chart(given: Mapping[str, str]) -> Any:
        return {"svg": views[_number(given, "run")].chart(_number(given, "table"), given.get("metric", ""))}

    def compared(given: Mapping[str, str]) -> Any:
        return comparison(views[_number(given, "first")].run, views[_number(given, "second")].run)

    def what_if(given: Mapping[str, Any]) -> Any:
        view = views[_number(given, "run")]
        table, unit, edit = _number(given, "table"), str(given.get("unit", "")), given.get("edit", {})
        if not isinstance(edit, dict):
            raise UserError("edit must be an object: {field: value}")
        data = view.unit_data(table, unit)
        return {"blocks": models.respond(view.run.directory, data.cells[0].id, unit, edit)}

    def explain(given: Mapping[str, Any]) -> Any:
        view = views[_number(given, "run")]
        unit = str(given.get("unit", ""))
        data = view.unit_data(_number(given, "table"), unit)
        cell = next((c for c in data.cells if view.places[c.id] == _number(given, "cell")), None)
        if cell is None:
            raise UserError(f"cell: no cell of this table, got {given.get('cell')!r}")
        return {"blocks": models.explain(view.run.directory, cell.id, unit, _constraints(given))}

    def curves(given: Mapping[str, Any]) -> Any:
        view, table, unit = views[_number(given, "run")], _number(given, "table"), str(given.get("unit", ""))
        data = view.unit_data(table, unit)
        return {"blocks": models.curves(view.run.directory, table, data.cells[0].id, unit)}

    queries = {
        "runs": listed,
        "overview": overview,
        "progress": so_far,
        "units": units,
        "unit": unit,
        "disagreement": disagreement,
        "chart": chart,
        "compare": compared,
    }
    routes = [Route(path, _file(*file)) for path, file in FILES.items()]
    routes.append(Route("/favicon.ico", _no_icon))
    routes += [Route(f"/api/{name}", _query(query)) for name, query in queries.items()]
    routes.append(Route("/api/what-if", _posted(what_if), methods=["POST"]))
    routes.append(Route("/api/explain", _posted(explain), methods=["POST"]))
    routes.append(Route("/api/curves", _posted(curves), methods=["POST"]))
    app = Starlette(routes=routes, middleware=[Middleware(Guard, token=token)])
    app.state.views = views
    return app


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def respond(_: Request) -> Response:
        return Response(static_file(name), media_type=media_type)

    return respond


async def _no_icon(_: Request) -> Response:
    return Response(status_code=204)


def _query(function: Callable[[Mapping[str, str]], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return await _answered(function, request.query_params)

    return respond


def _posted(function: Callable[[Mapping[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return JSONResponse({"error": "the request is too large"}, 413)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict) or request.headers.get("content-type") != "application/json":
            return JSONResponse({"error": "expected a JSON object"}, 400)
        return await _answered(function, given)

    return respond


async def _answered(function: Callable[[Any], Any], given: Any) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(function, given))
    except UserError as error:
        return JSONResponse({"error": "\n".join(error.lines)}, 404)


def _constraints(given: Mapping[str, Any]) -> Constraints:
    locked, ranges = given.get("locked", []), given.get("ranges", {})
    if not isinstance(locked, list) or not isinstance(ranges, dict):
        raise UserError("expected locked: [field, ...] and ranges: {field: [low, high]}")
    found = {}
    for name, ends in ranges.items():
        try:
            low, high = (float(end) for end in ends)
        except (TypeError, ValueError):
            raise UserError(f"ranges: {name}: expected two numbers, got {ends!r}") from None
        if not low <= high:
            raise UserError(f"ranges: {name}: must ascend, got {low:g} to {high:g}")
        found[str(name)] = (low, high)
    return Constraints(frozenset(map(str, locked)), found)


def _number(given: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = given.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise UserError(f"{name}: expected a whole number, got {value!r}") from None
