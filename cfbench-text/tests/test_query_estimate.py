"""The estimate of ``cfbench plan`` against what a server really receives."""

import json
import re

import pytest
from fake_endpoint import said

from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.data_files import DataAccess

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")


def reply(body, attempt):
    if "JSON array" not in body["messages"][0]["content"]:
        return said("1", usage=(50, 1))
    topic = body["messages"][0]["content"].split("one of these names:\n  ")[1].split(":")[0]
    statement = {"statement": body["messages"][1]["content"].split("\n")[1][:40], "topic": topic}
    return said(json.dumps([{**statement, "sentiment": "positive"}]), usage=(300, 30))


@pytest.fixture
def config(serve):
    server = serve(reply)
    chat = {"name": "llm", "endpoint": server.url, "model": "m"}
    return server, {
        "suite": "text",
        "executor": "inline",
        "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
        "extractor": {**chat, "input_price": 0.5, "output_price": 1.5},
        "generators": ["item-review", "reference"],
        "judges": [chat],
        "metrics": ["st2exp"],
        "protocol": {"read": "extractor"},
    }


def lines_of(config):
    prepared = api.prepare(config)
    return prepared.suite.estimate(prepared.config, prepared.plan)


def numbers(line):
    """Requests, tokens of prompts and of responses, and the price if there is one."""
    found = re.search(r"about ([\d,]+) requests, ([\d,]+) \+ ([\d,]+) tokens(?:, ([\d.]+))?$", line)
    return [float(one.replace(",", "")) if one else None for one in found.groups()]


def test_the_requests_for_reviews_are_those_that_the_server_receives(config, tmp_path):
    server, document = config
    reviews, texts, verdicts, total = lines_of(document)
    assert not server.requested
    api.run(document, out=tmp_path / "run")
    systems = [body["messages"][0]["content"] for body in server.requested]
    users = [body["messages"][1]["content"] for body in server.requested]
    extracting = {user for system, user in zip(systems, users, strict=True) if "JSON array" in system}
    requests, given, written, price = numbers(reviews)
    more = numbers(texts)
    assert requests <= len(extracting) <= requests + more[0]
    assert numbers(verdicts)[0] > 0
    first = slice(int(requests))  # reviews are extracted before texts
    characters = sum(map(len, systems[first])) + sum(map(len, users[first]))
    assert given == pytest.approx(characters / 4, rel=0.02)
    assert price == pytest.approx((0.5 * given + 1.5 * written) / 1e6, abs=0.005)
    assert "input_price and output_price" in total and "Assumed" in total


def test_twice_the_rows_are_twice_the_verdicts_and_the_price_follows(config):
    _, document = config
    few = lines_of({**document, "protocol": {"read": "extractor", "rows": 4}})
    many = lines_of({**document, "protocol": {"read": "extractor", "rows": 8}})
    assert numbers(many[2])[0] == 2 * numbers(few[2])[0] and numbers(many[0]) == numbers(few[0])


def test_nothing_is_estimated_without_an_endpoint(config, tmp_path):
    _, document = config
    assert lines_of({**document, "extractor": "rules", "judges": ["overlap"]}) == []


def test_the_command_shows_it_and_says_when_there_is_no_price(config, tmp_path, capsys):
    _, document = config
    free = {**document, "extractor": {k: v for k, v in document["extractor"].items() if "price" not in k}}
    path = tmp_path / "study.yaml"
    path.write_text(json.dumps(free))
    assert main(["plan", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "Estimate" in shown and "no price: set input_price" in shown


def test_data_that_a_plan_would_have_to_download_are_named(config, tmp_path, monkeypatch):
    _, document = config
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(tmp_path))
    access = DataAccess(None, planning=True)
    prepared = api.prepare({**document, "data": ["musical-instruments"]}, access=access)
    lines = prepared.suite.estimate(prepared.config, prepared.plan)
    assert "musical-instruments: not estimated, because its files are not here" in lines[0]
