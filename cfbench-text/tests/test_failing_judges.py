"""Studies whose judge is behind a server that fails, or does not decide."""

import numpy as np
import pandas as pd
import pytest
from fake_endpoint import said

from cfbench_core import api

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")

DOWN = (500, {}, {"error": "down"})


@pytest.fixture
def study(serve, tmp_path, monkeypatch):
    """``study(reply, cache, **protocol)``: a run with the judges overlap and llm, and the bodies that its server got."""
    state = {"reply": None, "runs": 0}
    server = serve(lambda body, attempt: state["reply"](body, len(server.requested)))

    def run(reply, cache, **protocol):
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / cache))
        state["reply"], before = reply, len(server.requested)
        config = {
            "suite": "text",
            "executor": "inline",
            "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
            "extractor": "rules",
            "generators": ["item-review"],
            "judges": ["overlap", {"name": "llm", "endpoint": server.url, "retries": 0, "requests": 4}],
            "metrics": ["st2exp"],
            "protocol": protocol,
        }
        state["runs"] += 1
        done = api.run(config, out=tmp_path / f"run-{state['runs']}")
        return done, [body["messages"][1]["content"] for body in server.requested[before:]]

    return run


def digit(body, number=0):
    return said("1" if len(body["messages"][1]["content"]) % 3 else "0", usage=(50, 1))


def scores(run):
    return run.scores[["metric", "unit", "value", "status"]].sort_values(
        ["metric", "unit"], ignore_index=True
    )


def test_a_judge_that_is_about_to_reason_gives_no_score(study):
    top = [{"token": token, "logprob": p} for token, p in (("<think>", -1e-7), ("1", -18.0), ("0", -20.0))]
    done, sent = study(
        lambda body, number: said("<think>", logprobs={"content": [{"top_logprobs": top}]}), "cache"
    )
    (cell,) = done.cells()
    assert (cell.status, done.exit_code) == ("failed", 1) and len(sent)
    assert f"{len(sent)} of {len(sent)} verdicts of judge llm are undecided" in cell.reason
    found = scores(done)
    by_model = found["metric"].str.contains("llm")
    assert set(found[by_model]["status"]) == {"failed"} and found[by_model]["value"].isna().all()
    assert not (found[~by_model]["status"] == "failed").any()
    assert set(done.table("failures.parquet")["reason"]) == {"no verdict"}
    assert set(done.table("statements.parquet")["verdict"][lambda v: v == "undecided"]) == {"undecided"}


def test_verdicts_that_a_server_failed_to_give_are_queried_by_the_same_command(study):
    undisturbed, needed = study(digit, "undisturbed")
    assert undisturbed.exit_code == 0
    partial, tried = study(lambda body, number: digit(body) if number % 4 else DOWN, "cache", max_failed=1.0)
    (cell,) = partial.cells()
    assert (cell.status, partial.exit_code) == ("partial", 1)
    assert "prompts to" in cell.reason and "HTTP 500" in cell.reason
    healed, again = study(digit, "cache", max_failed=1.0)
    assert healed.exit_code == 0 and len(tried) == len(needed) > len(again) > 0
    assert len(again) == len(set(again)) and {*again} < {*needed}
    pd.testing.assert_frame_equal(scores(healed), scores(undisturbed), check_exact=True)
    (used,) = healed.summaries("usage").values()
    assert used == {"responses": len(needed), "input_tokens": 50 * len(needed), "output_tokens": len(needed)}
    cached, none = study(digit, "cache", max_failed=1.0)
    assert (cached.cells()[0].status, none) == ("cached", [])
    assert np.isfinite(scores(cached)["value"]).any()
