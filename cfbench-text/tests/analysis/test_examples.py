"""Texts with their statements: the output shows the verdicts of the run, on a terminal and as a figure."""

import io

import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.errors import UserError
from cfbench_text.analysis.examples import Config, Examples

ROW = {"dataset": "d", "model": "m", "role": "", "judge": "j", "unit": "u|i|1", "text": "The user likes it."}


def table(*statements):
    names = ["side", "statement", "topic", "sentiment", "verdict", "closest"]
    return pd.DataFrame([{**ROW, **dict(zip(names, one, strict=True))} for one in statements])


def test_a_small_example_is_printed_line_by_line():
    given = table(
        ("text", "bass is deep", "sound", "positive", "entailed", "the bass is deep"),
        ("text", "it is cheap", "price", "positive", "contradicted", "it costs too much"),
        ("text", "it is blue", "look", "neutral", "unsupported", None),
        ("reference", "the bass is deep", "sound", "positive", "entailed", "bass is deep"),
        ("reference", "it costs too much", "price", "negative", "contradicted", "it is cheap"),
    )
    assert Examples().text(given).splitlines() == [
        "m on d",
        "u|i|1",
        "“The user likes it.”",
        "  + supported: bass is deep (sound, positive) · closest in the review: the bass is deep",
        "  ! contradicted: it is cheap (price, positive) · closest in the review: it costs too much",
        "  ? unsupported: it is blue (look, neutral) · not mentioned in the review",
        "  - left out: it costs too much (price, negative)",
        "",
        "Verdicts of j: + supported, ! contradicted, ? unsupported.",
    ]


def test_colours_are_those_of_the_verdicts_and_what_is_written_cannot_break_the_page():
    given = table(("text", "<script>x</script> & so on", "sound", "positive", "entailed", "a"),
                  ("text", "b", "sound", "negative", "contradicted", "a"))  # fmt: skip
    (figure,) = Examples().figures(given)
    assert 'class="certified"' in figure.svg and 'class="baseline"' in figure.svg
    assert "<script" not in figure.svg and "&lt;script&gt;" in figure.svg and figure.wide


def test_a_text_without_statements_is_shown_too():
    given = table((None,) * 6).assign(text="")
    assert "(an empty text)\n  no statement of it was judged" in Examples().text(given)


def test_the_shown_verdicts_are_those_of_the_run(run, answer):
    found = answer("examples").table
    assert set(found["model"]) == {"item-review", "again"}  # who competes
    units = found.groupby("model")["unit"].unique()
    assert list(units["item-review"]) == list(units["again"]) and len(units["again"]) == 3
    columns = ["model", "unit", "side", "statement", "topic", "sentiment", "verdict"]
    every = run.table("statements.parquet")
    wanted = every[every["model"].isin(units.index) & every["unit"].isin(units["again"])]
    one, two = (t[columns].astype(str).sort_values(columns, ignore_index=True) for t in (found, wanted))
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    texts = run.explanations.set_index(["model", "unit"])["text"]
    assert all(texts[row.model, row.unit] == row.text for row in found.itertuples())


def test_the_closest_statement_is_that_which_entails_it_or_one_on_its_topic():
    from cfbench_text.analysis.examples import _closest

    def row(side, statement, topic, sentiment, verdict, other):
        return {"cell": "c", "unit": "u", "side": side, "statement": statement, "topic": topic,
                "sentiment": sentiment, "verdict": verdict, "other": other}  # fmt: skip

    rows = [
        row("text", "bass is deep", "sound", "positive", "entailed", "deep bass"),
        row("text", "treble is harsh", "sound", "negative", "unsupported", None),
        row("text", "treble is soft", "sound", "positive", "contradicted", None),
        row("text", "it is blue", "look", "positive", "unsupported", None),
        row("reference", "it is cheap", "price", "positive", "unsupported", None),
        row("reference", "deep bass", "sound", "positive", "entailed", "bass is deep"),
        row("reference", "harsh treble", "sound", "neutral", "unsupported", None),
        row("reference", "noise everywhere", "sound", "negative", "unsupported", None),
    ]
    assert _closest(pd.DataFrame(rows)) == [
        "deep bass",
        "harsh treble",
        "noise everywhere",  # the one that denies it, though "harsh treble" has a word of it
        None,
        None,
        "bass is deep",
        "treble is harsh",
        "bass is deep",
    ]


def test_it_can_be_drawn_again_with_other_options(answer):
    found = answer("examples", rows=2)
    assert found.table["unit"].nunique() == 2 and "Verdicts of overlap" in found.text
    again = pd.read_csv(io.StringIO(found.table.to_csv(index=False)))
    assert [figure.svg for figure in Examples().figures(again)] == [figure.svg for figure in found.figures]


def test_a_judge_that_is_not_there_is_named(run):
    with pytest.raises(UserError, match="no judge 'overlop' in this run"):
        Examples(Config(judge="overlop")).table([run])


def test_of_two_runs_with_the_same_cells_the_later_counts(run, answer):
    from cfbench_core.run_directory import Run

    again = Examples().table([Run(run.directory), run, run])
    pd.testing.assert_frame_equal(again, answer("examples").table)


def test_undecided_statements_are_neither_supported_nor_left_out():
    given = table(
        ("text", "bass is deep", "sound", "positive", "undecided", None),
        ("reference", "it costs too much", "price", "negative", "undecided", None),
    )
    shown = Examples().text(given)
    assert "  ~ undecided: bass is deep (sound, positive)\n" in shown and "left out" not in shown
    assert shown.endswith("? unsupported, ~ undecided.")


def test_unsupported_spans_are_marked_also_where_a_line_ends():
    given = table(("text", "it is blue", "look", "neutral", "unsupported", None)).assign(
        text="The user <likes> it.", spans="4-12 17-19"
    )
    shown = Examples().text(given)
    assert "“The [[user <li]]kes> [[it]].”" in shown.splitlines()
    assert "Between [[ and ]]" in shown
    (figure,) = Examples().figures(given)
    assert figure.svg.count("<tspan") == figure.svg.count("</tspan>") == 2 and "&lt;li</tspan>" in figure.svg
    long = given.assign(text="word " * 60, spans="5-200")
    lines = Examples().text(long).splitlines()[2:4]
    assert all(line.count("[[") == line.count("]]") == 1 for line in lines)


@pytest.mark.slow
def test_spans_of_a_run_reach_its_examples(tmp_path, monkeypatch):
    tiny = pytest.importorskip("cfbench_text.models.tiny")
    pytest.importorskip("transformers", reason="needs cfbench-text[models]")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    model = tiny.token_classifier(tmp_path / "model")
    config = {
        "suite": "text",
        "executor": "inline",
        "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
        "extractor": "rules",
        "generators": ["item-review"],
        "judges": ["overlap"],
        "metrics": ["stent", {"name": "lettucedetect", "model": str(model)}],
        "protocol": {"rows": 6},
    }
    done = api.run(config, out=tmp_path / "run")
    spans, scores = done.table("spans.parquet"), done.scores
    texts = done.rows("explanations.parquet", unit=spans["unit"].unique().tolist()).set_index("unit")["text"]
    covered = (spans["end"] - spans["start"]).groupby(spans["unit"]).sum()
    expected = covered / texts.str.len()[covered.index]
    found = scores[scores["metric"] == "LettuceDetect"].set_index("unit")["value"]
    pd.testing.assert_series_equal(found[covered.index], expected, check_names=False, check_dtype=False)
    assert (found.drop(covered.index) == 0).all() and len(covered)
    table = Examples().table([done])
    marked = table[table["spans"] != ""]
    assert len(marked) and set(marked["unit"]) <= set(spans["unit"])
    assert "Underlined" in Examples().figures(table)[0].note
