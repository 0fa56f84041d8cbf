"""API keys: which variables may be named, where a key is sent, and that no file or message holds one."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cfbench_core import api, redaction
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Prompt, address_problem, is_loopback
from cfbench_text.models.endpoint import Endpoint

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")

SECRET = "marker-7f3a9c2e51b84d60"

STUDY = """\
suite: text
executor: {executor}
workers: 1
data: {{name: reviews, path: reviews.jsonl, domain: toy-reviews}}
extractor: rules
generators: [reference]
judges:
  - overlap
  - {judge}
metrics: [st2exp]
"""


class Server:
    """A chat server: ``reply(headers)`` -> (status, headers, body). ``seen`` are the headers of the requests."""

    def __init__(self, reply):
        self.seen = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                outer.seen.append(dict(self.headers))
                status, headers, body = reply(self.headers)
                content = body.encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(redaction, "_read", {})  # of earlier tests in this process
    running = []

    def start(reply):
        running.append(Server(reply))
        return running[-1]

    yield start
    for one in running:
        one.close()


def said(text):
    return 200, {}, json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def study(folder, judge, executor="inline"):
    rows = [
        {
            "user": f"u{user}",
            "item": f"i{(user + time) % 5}",
            "text": "The bass is excellent.",
            "rating": 4,
            "time": time,
        }
        for user in range(6)
        for time in range(5)
    ]
    (folder / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "study.yaml"
    path.write_text(STUDY.format(judge=judge, executor=executor))
    return path


def wrong(folder, judge, **options):
    with pytest.raises(UserError) as caught:
        api.plan(study(folder, judge), **options)
    (line,) = caught.value.lines
    assert line.startswith(f"{folder / 'study.yaml'}:9: judges[1]")
    return line


# What a configuration may name


@pytest.mark.parametrize(
    ("key", "reported"),
    [
        (
            "AWS_SECRET_ACCESS_KEY",
            "allowed by --allow-env AWS_SECRET_ACCESS_KEY; got 'AWS_SECRET_ACCESS_KEY'",
        ),
        ("sk-abcdefghijklmnop", "never the key itself"),
        ("AKIAIOSFODNN7EXAMPLE", "or one that --allow-env NAME allows"),
        ("_API_KEY", "or one that --allow-env NAME allows"),
        ("HOME/../X_API_KEY", "never the key itself"),
    ],
)
def test_a_key_is_the_name_of_a_variable_that_ends_in_api_key(serve, monkeypatch, tmp_path, key, reported):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-real-secret-value")
    line = wrong(tmp_path, f"{{name: llm, endpoint: 'https://127.0.0.1:9/v1', key: {key}}}")
    assert reported in line
    assert (
        key in line
        if key == "AWS_SECRET_ACCESS_KEY"
        else key not in line.replace("study.yaml", "").replace("ends in _API_KEY", "")
    )


def test_other_variables_are_allowed_by_name(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_TOKEN", SECRET)
    path = study(tmp_path, "{name: llm, endpoint: 'https://127.0.0.1:9/v1', key: LAB_TOKEN}")
    with pytest.raises(UserError, match="--allow-env LAB_TOKEN"):
        api.plan(path)
    assert api.plan(path, allow_env=["LAB_TOKEN"]).to_run
    assert main(["plan", str(path)]) == 2
    assert main(["plan", str(path), "--allow-env", "LAB_TOKEN"]) == 0


def test_a_secret_in_the_command_line_is_not_repeated(serve, tmp_path, capsys):
    path = study(tmp_path, "{name: llm, endpoint: 'https://127.0.0.1:9/v1'}")
    assert main(["plan", str(path), "--set", f"judges.1.key={SECRET}"]) == 2
    shown = capsys.readouterr()
    assert "--set judges.1.key=...: judges[1].key: must be the name" in shown.err
    assert SECRET not in shown.err + shown.out


def test_a_configuration_that_holds_the_value_of_a_key_is_refused(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    path = study(tmp_path, f"{{name: llm, endpoint: 'https://127.0.0.1:9/v1', model: 'a {SECRET}'}}")
    with pytest.raises(UserError) as caught:
        api.plan(path)
    assert caught.value.lines == (
        f"{path}:9: model: holds the value of $LAB_API_KEY; name the variable instead",
    )


@pytest.mark.parametrize(
    ("address", "reported"),
    [
        (f"https://user:{SECRET}@example.org/v1", "must not hold a user name or a password"),
        (f"https://{SECRET}@example.org/v1", "must not hold a user name or a password"),
        (f"https://example.org/v1?key={SECRET}", "must not have a part after ? or #"),
        (f"https://example.org/v1?api_key={SECRET}", "must not have a part after ? or #"),
        (f"https://example.org/v1#{SECRET}", "must not have a part after ? or #"),
        (f"ftp://example.org/{SECRET}", "must be an address such as https://api.example.org/v1"),
        (f"file:///etc/{SECRET}", "must be an address such as"),
        (SECRET, "must be an address such as"),
        (f"https:///{SECRET}", "must be an address such as"),
        (f"https://[::1/{SECRET}", "is not an address"),
        (f"https://example.org:x/{SECRET}", "is not an address"),
        (f"http://example.org/{SECRET}", "http would send the key in $LAB_API_KEY unencrypted over the network"),
    ],
)  # fmt: skip
def test_an_address_holds_no_secret_and_gets_none_over_plain_http(serve, tmp_path, address, reported):
    line = wrong(tmp_path, f"{{name: llm, endpoint: '{address}', key: LAB_API_KEY}}")
    assert reported in line and SECRET not in line


def test_plain_http_is_for_this_machine_or_without_a_key():
    for address in (
        "http://127.0.0.1:1/v1",
        "http://localhost/v1",
        "http://[::1]:8000/v1",
        "https://example.org/v1",
    ):
        assert address_problem(address, "LAB_API_KEY") == ""
    assert address_problem("http://10.0.0.3/v1", None) == ""
    for host in ("127.0.0.1.example.org", "localhost.example.org", "10.0.0.3", "0.0.0.0", "2130706433"):
        assert not is_loopback(host)


# Where keys go


def test_a_key_is_sent_only_if_it_is_named(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server = serve(lambda headers: said("x"))
    list(Endpoint(ChatSource(endpoint=server.url)).write([Prompt("", "a")], 5))
    list(Endpoint(ChatSource(endpoint=server.url, key="OPENAI_API_KEY")).write([Prompt("", "a")], 5))
    assert [one.get("Authorization") for one in server.seen] == [None, f"Bearer {SECRET}"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(serve, monkeypatch, status):
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    other = serve(lambda headers: said("stolen"))
    first = serve(lambda headers: (status, {"location": f"{other.url}/x?token={SECRET}"}, ""))
    source = ChatSource(endpoint=first.url, key="LAB_API_KEY")
    with pytest.raises(UserError, match=rf"redirects to http://127.0.0.1 \(HTTP {status}\)") as caught:
        list(Endpoint(source).write([Prompt("", "a")], 5))
    assert other.seen == [] and SECRET not in str(caught.value)


def test_a_proxy_of_the_environment_does_not_see_requests_to_this_machine(serve, monkeypatch):
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    proxy, server = serve(lambda headers: said("proxy")), serve(lambda headers: said("server"))
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    found = dict(Endpoint(ChatSource(endpoint=server.url, key="LAB_API_KEY")).write([Prompt("", "a")], 5))
    assert found[0].text == "server" and proxy.seen == []


@pytest.mark.parametrize(
    ("value", "reported"), [(None, "is not set"), ("a\nb", "holds characters"), ("kéy", "holds")]
)
def test_a_variable_without_a_usable_key_is_one_line(serve, monkeypatch, value, reported):
    monkeypatch.delenv("LAB_API_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LAB_API_KEY", value)
    source = ChatSource(endpoint=serve(lambda headers: said("x")).url, key="LAB_API_KEY")
    with pytest.raises(UserError, match=f"the environment variable LAB_API_KEY {reported}"):
        list(Endpoint(source).write([Prompt("", "a")], 5))


# What remains


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_a_server_repeats_of_the_key_is_not_shown(serve, monkeypatch, status):
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    server = serve(lambda headers: (status, {}, f"bad key: {headers['Authorization']}"))
    endpoint = Endpoint(ChatSource(endpoint=server.url, key="LAB_API_KEY"))
    try:
        shown = str(dict(endpoint.write([Prompt("", "a")], 5)))
    except UserError as error:
        shown = str(error)
    assert "bad key: Bearer [$LAB_API_KEY]" in shown and SECRET not in shown


def test_a_response_is_cached_without_the_key(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_API_KEY", SECRET)
    escaped = "".join(f"\\u{ord(character):04x}" for character in SECRET)
    server = serve(
        lambda headers: (200, {}, '{"choices": [{"message": {"content": "key ' + escaped + '"}}]}')
    )
    (found,) = Chat(ChatSource(endpoint=server.url, key="LAB_API_KEY")).write([Prompt("", "a")], 5)
    assert found.text == "key [$LAB_API_KEY]"
    assert holding(tmp_path, SECRET) == []


def holding(folder, text):
    """The files that hold a text."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("name", ["LAB_API_KEY", pytest.param("LAB_TOKEN", marks=pytest.mark.slow)])
def test_no_file_of_a_run_holds_the_key(serve, monkeypatch, tmp_path, capsys, executor, name):
    monkeypatch.setenv(name, SECRET)
    replies = {"bad": True}

    def reply(headers):
        if replies["bad"]:
            return 401, {}, f"bad key {headers['Authorization']}"
        return said(f"1 {headers['Authorization']}")

    server = serve(reply)
    path = study(tmp_path, f"{{name: llm, endpoint: '{server.url}', key: {name}, retries: 0}}", executor)
    call = ["run", str(path), "--output", "out", "--allow-env", name]
    assert main(call) == 1
    assert any("bad key" in file.read_text() for file in (tmp_path / "out" / "logs").glob("*.txt"))
    replies["bad"] = False
    assert main(call) == 1  # the response is neither 1 nor 0
    shown = capsys.readouterr()
    assert f"note: judges[1] sends the key in ${name} to 127.0.0.1" in shown.err
    assert SECRET not in shown.out + shown.err
    assert server.seen and all(SECRET in one["Authorization"] for one in server.seen)
    assert (tmp_path / "out" / "report.html").exists() and holding(tmp_path, SECRET) == []
