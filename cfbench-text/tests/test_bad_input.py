"""Bad reviews, files, models and endpoints in whole runs: a clear line each, and the rest as it was."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.errors import UserError

SAID = (
    "The bass is excellent.",
    "The price is a ridiculous joke.",
    "The headband is comfortable, and the cable is poor.",
    "The battery is weak and disappointing.",
    "The hinge is strong.",
)
LAST = {
    "empty": "",
    "blank": " \n\t ",
    "long": "The bass is excellent and the price is great. " * 2_300 + "The hinge is strong at the very end.",
    "unbroken": "headband " * 20_000,
    "emoji": "The bass is excellent 🎧🔥👩\u200d🎤 and here to stay.",
    "right-to-left": "הצליל מצוין. The bass is \u202eawful\u202c. الصوت رائع.",
    "half": "The bass is half \ud83d a character.",
    "nul": "The bass is excellent\x00 and loud.",
}
"""What the users of the file "nasty" wrote last: their test rows."""


def reviews(last=None):
    """Five reviews of eight users; each user's last is of another item, which others had before."""
    for number, (user, text) in enumerate({**dict.fromkeys(LAST, SAID[0]), **(last or {})}.items()):
        for time in range(5):
            said = text if time == 4 else SAID[(number + time) % 5]
            yield {"user": user, "item": f"i{(number + time) % 5}", "text": said, "rating": 4, "time": time}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def study(folder, names, **more):
    data = [
        {"name": "reviews", "path": str(folder / f"{name}.jsonl"), "domain": "toy-reviews", "label": name}
        for name in names
    ]
    return {
        "suite": "text",
        "executor": "process",
        "workers": 2,
        "data": data,
        "extractor": "rules",
        "generators": ["item-review", "reference"],
        "judges": ["overlap"],
        **more,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("bad")
    write(found / "good.jsonl", reviews())
    write(found / "nasty.jsonl", reviews(LAST))
    write(found / "nameless.jsonl", ({k: v for k, v in row.items() if k != "text"} for row in reviews()))
    lines = [json.dumps(row) for row in reviews()]
    (found / "broken.jsonl").write_text("\n".join([*lines[:6], lines[6][:40], *lines[7:]]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(found / "cache"))
        yield found


@pytest.fixture(scope="module")
def run(folder):
    return api.run(study(folder, ["good", "nasty", "broken", "nameless"]), out=folder / "all")


def cells(run):
    return {str(cell.labels["dataset"]): cell for cell in run.cells()}


def row_of(run, user, dataset="nasty"):
    found = run.explanations
    chosen = found[(found["dataset"] == dataset) & (found["user"] == user) & (found["model"] == "reference")]
    return chosen.to_dict("records")[0]


def values_of(run, user, dataset="nasty"):
    scores = run.scores
    chosen = scores[
        (scores["dataset"] == dataset) & (scores["user"] == user) & (scores["model"] == "reference")
    ]
    return chosen.set_index("metric")["value"]


def test_errors_of_unreadable_files_name_the_line_or_the_columns(run):
    assert cells(run)["broken"].status == cells(run)["nameless"].status == "failed"
    assert "broken.jsonl:7: is not JSON" in cells(run)["broken"].reason
    assert "no column looks like the text" in cells(run)["nameless"].reason
    assert "Its columns: user, item, rating, time" in cells(run)["nameless"].reason
    assert run.exit_code == 1


def test_other_cells_have_the_same_scores_as_when_run_alone(run, folder):
    alone = api.run(study(folder, ["good"], executor="inline"), out=folder / "alone", fresh=True)
    columns = ["cell", "metric", "unit", "value"]
    one, two = (r.scores[r.scores["dataset"] == "good"][columns] for r in (run, alone))
    one, two = (scores.sort_values(columns[:3], ignore_index=True) for scores in (one, two))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_every_nasty_row_has_a_result(run):
    assert cells(run)["nasty"].status == "ok"
    found = run.explanations[run.explanations["dataset"] == "nasty"]
    assert set(found["user"]) == set(LAST)


@pytest.mark.parametrize("user", ["empty", "blank"])
def test_a_review_without_words_is_a_reference_without_statements(run, user):
    assert row_of(run, user)["reference"] == ""
    assert values_of(run, user).filter(like="StEnt").isna().all()


def test_a_long_review_is_read_to_its_end(run):
    assert len(LAST["long"].split()) > 20_000
    assert "the hinge is strong at the very end" in row_of(run, "long")["reference"]
    assert values_of(run, "long")["StEnt-F1 (overlap)"] == 1


def test_a_review_without_any_mark_is_one_statement(run):
    assert row_of(run, "unbroken")["reference"].count("headband") == 20_000


@pytest.mark.parametrize("user", ["emoji", "right-to-left", "nul"])
def test_no_character_is_lost(run, user):
    strange = {char for char in LAST[user] if ord(char) > 127 or char == "\x00"}
    found = row_of(run, user)["reference"]
    kept = {"right-to-left": {"\u202e", "\u202c"}}.get(user, strange)  # sentences off all topics are left out
    assert kept and kept <= set(found)
    assert values_of(run, user)["StEnt-F1 (overlap)"] == 1


def test_half_a_character_is_marked_as_lost(run):
    assert "the bass is half \ufffd a character" in row_of(run, "half")["reference"]


def test_what_was_mended_is_computed_and_nothing_else(run, folder):
    before = len(run.outcomes)
    write(folder / "broken.jsonl", reviews())
    write(folder / "nameless.jsonl", reviews())
    again = api.run(study(folder, ["good", "nasty", "broken", "nameless"]), out=folder / "all")
    assert all(cell.done for cell in again.cells()) and again.exit_code == 0
    computed = {one["label"].split()[-1] for one in again.outcomes[before:] if one["status"] == "ok"}
    assert computed == {"broken", "nameless"}


# Models and endpoints


@pytest.mark.parametrize("model", ["./no-model", "package:no_such_package"])
def test_a_missing_model_is_reported_before_anything_is_computed(run, folder, model):
    judges = ["overlap", {"name": "nli", "model": model}]
    with pytest.raises(UserError, match=f"judge nli: model '{model}': no "):
        api.run(study(folder, ["good"], judges=judges), out=folder / "nli")
    assert not (folder / "nli").exists()


def test_a_model_that_is_not_here_costs_the_scores_only(run, folder):
    """Whether a name is in the local cache of models is known when it is loaded."""
    pytest.importorskip("transformers", reason="needs cfbench-text[models]")
    judges = ["overlap", {"name": "nli", "model": "nobody/no-model"}]
    found = api.run(study(folder, ["good"], judges=judges), out=folder / "nli")
    assert all("'nobody/no-model' is not on this machine" in cell.reason for cell in found.cells())
    reported = {one["kind"]: one["status"] for one in found.outcomes}
    assert reported["scores"] == "failed"
    assert {status for kind, status in reported.items() if kind != "scores"} == {"cached"}


class Yes(BaseHTTPRequestHandler):
    """A chat server that always answers "1"."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        content = json.dumps({"choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args): ...


def test_a_run_resumes_when_its_endpoint_is_available_again(run, folder):
    pytest.importorskip("httpx", reason="needs cfbench-text[llm]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    judge = {"name": "llm", "model": "m", "endpoint": f"http://127.0.0.1:{port}/v1", "retries": 0}
    requested = study(folder, ["good"], judges=[judge], metrics=["st2exp", "bleu"])
    down = api.run(requested, out=folder / "down")
    assert all(
        "does not answer" in cell.reason and "Start the server" in cell.reason for cell in down.cells()
    )
    server = ThreadingHTTPServer(("127.0.0.1", port), Yes)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        up = api.run(requested, out=folder / "down")
    finally:
        server.shutdown()
        server.server_close()
    assert all(cell.done for cell in up.cells())
    computed = {one["kind"] for one in up.outcomes if one["status"] == "ok"}
    assert computed == {"scores"}
    statements = up.table("statements.parquet")
    assert len(statements) and set(statements["verdict"]) == {"entailed"}
