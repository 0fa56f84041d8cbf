"""The HTTP side of the viewer: who may ask, what a page may do, and that nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_run import write_run

from cfbench_core.run_directory import Run

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from cfbench_core.view.app import MOST_BYTES, POLICY, application
from cfbench_core.view.queries import RunView

TOKEN = "a-token"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "shop", users=20)


@pytest.fixture
def stranger(directory: Path) -> Iterator[TestClient]:
    with TestClient(application([Run(directory)], TOKEN), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_cannot_read(stranger: TestClient) -> None:
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert stranger.get("/api/runs").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/app.js", "/api/runs", "/api/overview?run=0", "/?token=a-tokem", "/?token="]
)
def test_without_the_token_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403 and "cfbench view" in answer.text and "shop" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "[::1]:8000", ""])
def test_another_name_for_this_machine_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 400


def test_requests_of_other_sites_are_refused(client: TestClient) -> None:
    assert client.get("/api/runs", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/runs", headers={"Origin": "http://127.0.0.1:9999"}).status_code == 403
    assert client.get("/api/runs", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nowhere", "/api/units?run=0&cell=99"])
def test_every_answer_has_the_strict_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script_or_style_and_names_no_other_server(client: TestClient) -> None:
    page = client.get("/").text
    assert "style=" not in page and "<style" not in page and "<script>" not in page
    for path in ("/", "/app.js", "/blocks.js", "/pages.js", "/view.css", "/report.css"):
        text = client.get(path).text.replace("http://www.w3.org/2000/svg", "")
        assert text and "http:" not in text and "https:" not in text and "innerHTML" not in text


def test_answers_are_those_of_the_queries(client: TestClient, directory: Path) -> None:
    view = RunView(Run(directory))
    assert client.get("/api/overview?run=0").json() == view.overview()
    assert client.get("/api/units?run=0&cell=0&sort=gini&desc=1&page=1&size=7").json() == view.units(
        0, "gini", True, page=1, size=7
    )
    assert client.get("/api/unit", params={"run": 0, "table": 0, "unit": "u3/2"}).json() == view.unit(
        0, "u3/2"
    )
    assert client.get("/api/chart?run=0&table=0&metric=gini").json() == {"svg": view.chart(0, "gini")}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/units?run=1&cell=0", "no run 1"),
        ("/api/units?run=0&cell=x", "cell: expected a whole number, got 'x'"),
        ("/api/units?run=0", "cell: expected a whole number"),
        ("/api/units?run=0&cell=-1", "no cell -1"),
        ("/api/unit?run=0&table=0&unit=nobody", "'nobody' was not explained"),
    ],
)
def test_a_wrong_request_is_answered_by_one_line(client: TestClient, path: str, words: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404 and words in answer.json()["error"]


def test_only_what_if_accepts_a_body_and_only_json_of_moderate_size(client: TestClient) -> None:
    assert client.post("/api/runs").status_code == 405
    assert client.get("/api/what-if").status_code == 405
    assert (
        client.post("/api/what-if", content=b"{", headers={"content-type": "application/json"}).status_code
        == 400
    )
    assert (
        client.post("/api/what-if", content=b"{}", headers={"content-type": "text/plain"}).status_code == 400
    )
    large = b'"' + b"x" * MOST_BYTES + b'"'
    assert (
        client.post("/api/what-if", content=large, headers={"content-type": "application/json"}).status_code
        == 413
    )


def test_looking_writes_nothing(client: TestClient, directory: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    for path in ("/api/overview?run=0", "/api/units?run=0&cell=0", "/api/unit?run=0&table=0&unit=u3/2"):
        assert client.get(path).status_code == 200
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


def test_a_run_that_changes_is_read_again(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", users=10)
    with TestClient(application([Run(directory)], TOKEN), base_url="http://127.0.0.1:8000") as client:
        client.get(f"/?token={TOKEN}")
        before = client.get("/api/units?run=0&cell=0").json()["all"]
        write_run(directory, users=12)
        assert (before, client.get("/api/units?run=0&cell=0").json()["all"]) == (50, 60)
