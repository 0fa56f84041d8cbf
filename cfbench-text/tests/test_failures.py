"""Studies whose extractor is behind a server that fails: failure is a state of a unit, never an empty answer."""

import json

import pandas as pd
import pytest
from fake_endpoint import Server, said

from cfbench_core import api

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")


class Extracting:
    """A server that extracts one statement from a text, or fails for the texts that ``fails`` chooses."""

    def __init__(self):
        self.fails = lambda prompt, number: None
        self.answered = set()
        self.server = Server(self.reply)

    def reply(self, body, attempt):
        prompt = body["messages"][1]["content"]
        topic = body["messages"][0]["content"].split("one of these names:\n  ")[1].split(":")[0]
        assert body["a"] == {"b": [1]}
        failed = self.fails(prompt, len(self.server.requested))
        statement = {"statement": prompt.split("\n")[1][:40], "topic": topic, "sentiment": "positive"}
        if not failed:
            self.answered.add(prompt)
        return failed or said(json.dumps([statement]), usage=(100, 10))

    @property
    def received(self):
        return len(self.server.requested)


@pytest.fixture
def extracting():
    one = Extracting()
    yield one
    one.server.close()


@pytest.fixture
def study(extracting, tmp_path, monkeypatch):
    def run(cache, **protocol):
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / cache))
        config = {
            "suite": "text",
            "executor": "inline",
            "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
            "extractor": {
                "name": "llm",
                "endpoint": extracting.server.url,
                "retries": 0,
                "requests": 4,
                "extra_body": {"a": {"b": [1]}},
            },
            "generators": ["item-review", "reference"],
            "judges": ["overlap"],
            "metrics": ["stent", "bleu"],
            "protocol": {"read": "extractor", **protocol},
        }
        return api.run(config, out=tmp_path / f"run-{extracting.received}-{cache}")

    return run


def scores(run):
    names = ["cell", "metric", "unit"]
    return run.scores[[*names, "value", "status"]].sort_values(names, ignore_index=True)


DOWN = (500, {}, {"error": "down"})


def test_an_outage_fails_the_run_and_the_same_command_asks_the_rest(extracting, study):
    undisturbed = study("undisturbed")
    needed = extracting.received
    extracting.fails = lambda prompt, number: DOWN if number > needed + 30 else None
    broken = study("cache")
    assert broken.exit_code == 1 and {cell.status for cell in broken.cells()} == {"failed"}
    assert "HTTP 500" in broken.cells()[0].reason
    extracting.fails, before = lambda prompt, number: None, extracting.received
    healed = study("cache")
    assert extracting.received - before == needed - 30
    assert healed.exit_code == 0
    pd.testing.assert_frame_equal(scores(healed), scores(undisturbed), check_exact=True)
    used = healed.summaries("usage")
    assert used == undisturbed.summaries("usage")
    reviews = used["statements of toy-reviews"]
    assert reviews == {
        "responses": reviews["responses"],
        "input_tokens": 100 * reviews["responses"],
        "output_tokens": 10 * reviews["responses"],
    }


@pytest.mark.slow
def test_failed_questions_are_missing_values_until_the_server_answers_them(extracting, study):
    undisturbed = study("undisturbed")
    needed, extracting.answered = extracting.answered, set()
    extracting.fails = lambda prompt, number: None if number % 9 else DOWN
    partial = study("cache", max_failed=0.5)
    assert partial.exit_code == 1 and {cell.status for cell in partial.cells()} == {"partial"}
    assert "have no response" in partial.cells()[0].reason
    found, whole = scores(partial), scores(undisturbed)
    failed = partial.table("failures.parquet")
    assert len(failed) and set(failed["what"]) <= {"text", "reference"}
    stent = found[found["metric"] == "StEnt-R (overlap)"].merge(failed[["cell", "unit"]].drop_duplicates())
    assert set(stent["status"]) == {"failed"} and stent["value"].isna().all()  # not 0
    assert len(found) == len(whole)
    extracting.fails, before, answered = (
        lambda prompt, number: None,
        extracting.received,
        {*extracting.answered},
    )
    healed = study("cache", max_failed=0.5)
    assert healed.exit_code == 0
    again = [one["messages"][1]["content"] for one in extracting.server.requested[before:]]
    assert len(again) == len(set(again)) and {*again} == needed - answered
    pd.testing.assert_frame_equal(scores(healed), whole, check_exact=True)


def test_unreadable_answers_beyond_the_permitted_share_fail_the_cell(extracting, study):
    study("cache")
    reviews = extracting.received

    extracting.fails = lambda prompt, number: said("I cannot") if number % 2 else None
    failed = study("other", max_failed=0.2)
    assert extracting.received > reviews and failed.exit_code == 1
    reason = failed.cells()[0].reason
    assert "protocol.max_failed" in reason and "20%" in reason and "no array" in reason


def test_half_a_character_in_an_answer_does_not_stop_the_extraction(extracting, study):
    """A server that cuts an emoji writes the first of its two JSON escapes alone."""
    half = {"statement": "the bag is \ud83d fine", "topic": "comfort", "sentiment": "positive"}

    def cut(prompt, number):
        topic = extracting.server.requested[-1]["messages"][0]["content"]
        name = topic.split("one of these names:\n  ")[1].split(":")[0]
        return said(json.dumps([{**half, "topic": name}]))

    extracting.fails = cut
    run = study("cache")
    assert run.exit_code == 0, [cell.reason for cell in run.cells()]
    assert set(run.table("statements.parquet")["statement"]) == {"the bag is \ufffd fine"}
