"""The suite end to end on the synthetic reviews, and external texts."""

import json
import re

import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.errors import UserError

STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "generators": [
        "item-review",
        "reference",
        "round-trip",
        "shuffled-reference",
        {"name": "most-frequent", "of": "item"},
    ],
    "judges": ["overlap"],
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run(cache, tmp_path_factory):
    return api.run(STUDY, out=tmp_path_factory.mktemp("runs") / "study")


def means(run):
    return run.summary.assign(model=run.summary["cell"].str.split("/").str[1]).pivot(
        index="model", columns="metric", values="mean"
    )


def test_everything_went_well(run):
    assert {cell.status for cell in run.cells()} == {"ok"}
    assert run.exit_code == 0
    assert "<h2>Best model</h2>" in (run.directory / "report.html").read_text(encoding="utf-8")
    assert "synthetic" in run.data


def test_calibration_rows_are_where_they_belong(run):
    table = means(run)
    ideal = {
        "hallucinated (overlap)": 0,
        "omitted (overlap)": 0,
        "StEnt-F1 (overlap)": 1,
        "BLEU": 1,
        "ROUGE-L": 1,
    }
    for model in ("reference", "round-trip"):
        assert table.loc[model, list(ideal)].to_numpy() == pytest.approx(list(ideal.values()), abs=1e-9), (
            model
        )
    assert table.loc["shuffled-reference", "StEnt-F1 (overlap)"] < 0.5
    roles = {cell.labels["model"]: cell.role for cell in run.cells()}
    assert roles == {"item-review": "", "reference": "reference", "round-trip": "reference",
                     "shuffled-reference": "baseline", "most-frequent": "baseline"}  # fmt: skip


def test_no_row_has_its_own_reference_when_shuffled(run):
    texts = run.explanations[run.explanations["model"] == "shuffled-reference"]
    own = run.explanations[run.explanations["model"] == "reference"]
    assert sorted(texts["text"]) == sorted(own["text"])


def test_the_judge_is_named_in_every_column_that_it_answers_for(run):
    judged = {
        column.name for column in run.columns if column.name.startswith(("St", "halluc", "omit", "contra"))
    }
    assert judged and all(name.endswith(" (overlap)") for name in judged)


def test_every_row_is_named_by_user_item_and_time(run):
    texts = run.explanations
    joined = texts["user"] + "|" + texts["item"] + "|" + texts["time"].astype(str)
    assert (joined == texts["unit"]).all()
    assert {"user", "item", "time", "metric", "unit", "value", "status"} <= set(run.scores.columns)


def test_the_statements_of_a_run_carry_verdicts_that_agree_with_the_scores(run):
    statements = run.table("statements.parquet")
    mine = statements[(statements["model"] == "item-review") & (statements["side"] == "text")]
    share = mine.assign(right=mine["verdict"] == "entailed").groupby("unit")["right"].mean()
    scores = run.scores[
        (run.scores["model"] == "item-review") & (run.scores["metric"] == "hallucinated (overlap)")
    ]
    values = scores.set_index("unit")["value"].dropna()
    pd.testing.assert_series_equal(1 - share.sort_index(), values.sort_index(), check_names=False)


def test_signatures_record_what_determines_the_scores(run):
    reported = run.summaries("signatures")
    assert reported["statements of toy-reviews"]["text/extractor/rules"]["vaderSentiment"]
    of_scores = reported["scores of item-review on toy-reviews"]
    assert (
        "overlap" in of_scores["overlap"]["judge"] and "tok:13a" in of_scores["text/metric/bleu"]["sacrebleu"]
    )


def test_an_extraction_with_a_known_answer_is_compared_with_it(run):
    assert run.summaries("statements")["statements of toy-reviews"]["exact"] == 1.0


def test_excluded_reviews_are_reported(run):
    reported = run.summaries("data")["toy-reviews"]
    assert reported["synthetic"] is True
    assert reported["reviews"] == sum(v for k, v in reported.items() if k.startswith("excluded")) + sum(
        reported[part] for part in ("train", "validation", "test")
    )


@pytest.mark.parametrize("how", [{"chunk": 3}, {"executor": "process", "workers": 2, "chunk": 5}])
def test_the_numbers_do_not_depend_on_chunks_or_processes(run, cache, tmp_path, how):
    other = api.run({**STUDY, **how}, out=tmp_path / "other", fresh=True)
    columns = ["cell", "metric", "unit", "value"]
    one, two = (r.scores[columns].sort_values(columns[:3], ignore_index=True) for r in (run, other))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


@pytest.mark.slow
def test_statements_and_external_texts_do_not_depend_on_chunks(run, cache, tmp_path):
    texts = run.explanations[run.explanations["model"] == "item-review"].sample(frac=0.8, random_state=1)
    path = lines(tmp_path / "texts.jsonl", texts[["model", "user", "item", "text"]].to_dict("records"))
    found = []
    for chunk in (2, 500):
        other = api.run({**STUDY, "chunk": chunk}, explanations=path, out=tmp_path / str(chunk), fresh=True)
        found.append([other.table("statements.parquet"), other.scores, other.explanations])
    for one, two in zip(*found, strict=True):
        names = [name for name in ("cell", "unit", "metric", "judge", "side") if name in one]
        one, two = (table.sort_values(names, kind="stable", ignore_index=True) for table in (one, two))
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_the_corpus_analysis_counts_texts_by_hand(run):
    from cfbench_core.analyses import find, run_analysis
    from cfbench_core.registry import installed

    answer = run_analysis(find("corpus", [run], installed()), [run], installed())
    table = answer.table.set_index("model")
    for model, texts in run.explanations.groupby("model"):
        assert table.loc[model, "USR"] == texts["text"].nunique() / len(texts)
    assert table.loc["reference", "corpus F1 (overlap)"] == 1 and table.loc["reference", "corpus BLEU"] > 99.9
    assert "repeats itself most" in answer.words


def test_diversity_is_the_mean_over_all_pairs_of_texts():
    from collections import Counter
    from itertools import combinations

    from cfbench_text.analysis.corpus import diversity

    features = [{"bass", "price"}, {"bass"}, set(), {"price", "bass", "case"}]
    shared = [len(one & other) for one, other in combinations(features, 2)]
    counts = Counter(word for of_text in features for word in of_text)
    assert diversity(counts, len(features)) == pytest.approx(sum(shared) / len(shared))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_texts_that_come_in_parts_have_the_bleu_of_the_whole(run, size):
    from sacrebleu.metrics import bleu

    from cfbench_text.analysis.corpus import Texts
    from cfbench_text.domains import load_domain

    rows = run.explanations_of("toy-reviews/item-review")
    texts, references = rows["text"].tolist(), rows["reference"].tolist()
    found = Texts(load_domain("toy-reviews"))
    for start in range(0, len(texts), size):
        found.add(texts[start : start + size], references[start : start + size])
    assert found.numbers()["corpus BLEU"] == bleu.BLEU().corpus_score(texts, [references]).score


# External texts


def evaluated(run, path, tmp_path):
    return api.run(STUDY, explanations=path, out=tmp_path / "evaluated")


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_runs_own_texts_get_the_same_numbers_in_any_order_and_form(run, tmp_path):
    texts = run.explanations[run.explanations["model"].isin(["item-review", "most-frequent"])]
    shuffled = texts.sample(frac=1, random_state=0)
    named = shuffled[["model", "user", "item", "time", "text"]]
    path = lines(tmp_path / "texts.jsonl", named.to_dict("records"))
    again = evaluated(run, path, tmp_path)
    columns = ["model", "metric", "unit", "value"]
    scores = (one.scores[one.scores["model"].isin(["item-review", "most-frequent"])] for one in (run, again))
    one, two = (s[columns].sort_values(columns[:3], ignore_index=True) for s in scores)
    pd.testing.assert_frame_equal(one, two)


def test_opinions_are_left_out_of_texts_as_they_are_of_reviews(run, tmp_path):
    """The extractor by rules makes nothing of "they are happy", in whatever form it is said."""
    unit = run.explanations["unit"].iloc[0]
    reported = "The user would appreciate this product because they are happy, and the bass is warm."
    opinion = "The user would appreciate this product because they are happy."
    rows = [
        {"unit": unit, "text": reported, "model": "both"},
        {"unit": unit, "text": opinion, "model": "opinion"},
    ]
    found = evaluated(run, lines(tmp_path / "texts.jsonl", rows), tmp_path)
    said = found.table("statements.parquet").query("side == 'text'")
    assert said[said["model"] == "both"]["statement"].tolist() == ["the bass is warm"]
    assert said[said["model"] == "opinion"].empty
    remarks = {cell.labels["model"]: cell.reason for cell in found.cells()}
    assert "excluded from texts" in remarks["both"] and not remarks["reference"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"text": None}, "its text is null"),
        ({"text": {"en": "x"}}, "text must be text, got"),
        ({"text": "x" * 1_000_001}, "its text has 1,000,001 characters; at most 1,000,000 are possible"),
        ({"text": "x", "rating": float("nan")}, "rating must be a finite number, got 'nan'"),
        ({"text": "x", "rating": "good"}, "rating must be a number, got 'good'"),
        ({}, "has no text"),
    ],
)
def test_a_text_that_cannot_be_scored_is_reported_when_planning(run, tmp_path, row, complaint):
    path = lines(tmp_path / "texts.jsonl", [{"user": "a", "item": "b", "text": "t"}, {"unit": "c", **row}])
    with pytest.raises(UserError, match=rf"texts\.jsonl:2: {re.escape(complaint)}"):
        evaluated(run, path, tmp_path)


def test_rows_without_a_text_have_no_scores(run, tmp_path):
    row = run.explanations.iloc[0]
    path = lines(tmp_path / "one.jsonl", [{"unit": row["unit"], "text": row["reference"]}])
    found = evaluated(run, path, tmp_path)
    assert len(found.explanations_of("toy-reviews/one")) == 1
    mine = found.scores[found.scores["model"] == "one"]
    values = mine[mine["metric"] == "BLEU"].set_index("unit")["value"]
    assert values[row["unit"]] == pytest.approx(1) and values.drop(row["unit"]).isna().all()


def test_controls_are_scored_along_with_external_texts(run, tmp_path):
    row = run.explanations.iloc[0]
    found = evaluated(run, lines(tmp_path / "one.jsonl", [{"unit": row["unit"], "text": "x"}]), tmp_path)
    models = {cell.labels["model"]: cell.role for cell in found.cells()}
    assert models == {"one": "", "reference": "reference", "round-trip": "reference", "shuffled-reference": "baseline",
                      "most-frequent": "baseline"}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (
            [{"user": "nobody", "item": "x", "text": "t"}],
            "none of its 1 units is explained here. Its first is 'user nobody, item x'",
        ),
        ([{"user": "U000", "text": "t"}], "1: needs unit, or user and item"),
        ([{"unit": "UNIT", "text": "a"}, {"unit": "UNIT", "text": "b"}], "2: a second text for"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(run, tmp_path, rows, complaint):
    unit = run.explanations["unit"].iloc[0]
    rows = [{k: unit if v == "UNIT" else v for k, v in row.items()} for row in rows]
    found = evaluated(run, lines(tmp_path / "texts.jsonl", rows), tmp_path)
    assert found.exit_code == 1 and complaint in found.cells()[0].reason


def test_texts_of_other_units_are_excluded_and_reported(run, tmp_path):
    unit = run.explanations["unit"].iloc[0]
    rows = [{"unit": unit, "text": "a"}, {"user": "nobody", "item": "x", "text": "b"}]
    found = evaluated(run, lines(tmp_path / "some.jsonl", rows), tmp_path)
    cell = next(cell for cell in found.cells() if cell.labels["model"] == "some")
    assert cell.done and "1 of the 2 units in some.jsonl are not explained here" in cell.reason
    assert found.explanations_of("toy-reviews/some")["unit"].tolist() == [unit]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_external_texts_may_be_tables_without_a_rating(run, tmp_path, suffix):
    chosen = run.explanations[run.explanations["model"] == "item-review"]
    table = chosen.assign(model="mine")[["model", "user", "item", "time", "text"]]
    path = tmp_path / f"texts{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = evaluated(run, path, tmp_path)
    mine = found.explanations_of("toy-reviews/mine").set_index("unit")["text"]
    assert mine.to_dict() == chosen.set_index("unit")["text"].to_dict()


def test_a_row_without_the_label_that_others_have_is_reported_when_planning(run, tmp_path):
    rows = [{"unit": "a", "text": "b", "model": "mine"}, {"unit": "c", "text": "d"}]
    with pytest.raises(UserError, match=r"texts.jsonl:2: has no model, which the first row has"):
        evaluated(run, lines(tmp_path / "texts.jsonl", rows), tmp_path)


def test_broken_json_is_reported_with_its_line_before_anything_runs(run, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"unit": "a", "text": "b"}\n{"unit": \n')
    with pytest.raises(UserError, match=r"texts.jsonl:2: is not JSON"):
        evaluated(run, path, tmp_path)


def test_a_metric_without_a_judge_is_reported_when_planning(cache):
    with pytest.raises(UserError, match="metric stent needs a judge that gives entailment"):
        api.plan({**STUDY, "judges": [], "metrics": ["stent"]})


def test_rows_limits_what_is_explained(cache, tmp_path):
    found = api.run({**STUDY, "protocol": {"rows": 4}, "generators": ["item-review"]}, out=tmp_path / "few")
    assert found.scores["unit"].nunique() == 4


def test_references_may_be_reviews_as_they_were_written(run, tmp_path):
    requested = {**STUDY, "protocol": {"reference": "written"}, "metrics": ["bleu", "stent"]}
    found = api.run(requested, out=tmp_path / "written")
    shown = found.explanations.set_index(["model", "unit"])
    data = pd.read_parquet(next(found_reviews(found))).set_index("unit")["text"]
    assert (shown["reference"] == data.reindex(shown.index.get_level_values("unit")).to_numpy()).all()
    assert (shown.loc["reference", "text"] == shown.loc["reference", "reference"]).all()
    table, before = means(found), means(run)
    assert table.loc["reference", "BLEU"] == pytest.approx(1)
    assert table.loc["item-review", "BLEU"] != pytest.approx(before.loc["item-review", "BLEU"])
    # Statements are those of the review either way.
    name = "StEnt-F1 (overlap)"
    assert table.loc["item-review", name] == pytest.approx(before.loc["item-review", name])


def found_reviews(run):
    from cfbench_core.store import default_root

    keys = {one["key"] for one in run.outcomes if one["kind"] == "data"}
    return (path for path in default_root().rglob("reviews.parquet") if path.parent.name in keys)


def test_reviews_that_an_extractor_without_a_model_cannot_read_need_another_extractor(cache, tmp_path):
    """It has no responses that a second try could resume from."""
    run = api.run({**STUDY, "extractor": "template"}, out=tmp_path / "run")
    reason = run.cells()[0].reason
    assert "protocol.max_failed" in reason and "another extractor" in reason
    assert "responses" not in reason and "resumes" not in reason
