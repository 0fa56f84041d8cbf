from __future__ import annotations

import csv
import io
import json
import math
import operator
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_up_run import write_run
from rich.console import Console

from cfbench_core.errors import UserError
from cfbench_core.reports import FORMATS, print_tables, render, write_html
from cfbench_core.reports.tables import Table, tables
from cfbench_core.run_directory import Run, write_summary


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_run(tmp_path_factory.mktemp("runs") / "run")
    write_summary(Run(directory))
    return directory


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Run:
    return Run(shutil.copytree(original, tmp_path / "run"))


def small_run(
    directory: Path,
    values: dict[str, list[float]],
    direction: str = "higher",
    roles: dict[str, str] | None = None,
) -> Run:
    """One table: an explainer for each key, its scores for units u0, u1, ..."""
    roles = roles or {}
    directory.mkdir()
    metric = {"name": "hit", "direction": direction, "range": [0, 1], "question": "Does it <hit> & hold?"}
    cells = [
        {"cell": f"d/m/{name}", "dataset": "d", "model": "m", "explainer": name, "role": roles.get(name, ""),
         "status": "ok", "reason": "", "metrics": [metric], "stages": {}}
        for name in values
    ]  # fmt: skip
    layout = {"by": ["dataset", "model"], "row": "explainer"}
    (directory / "plan.json").write_text(json.dumps({"suite": "toy", "layout": layout, "cells": cells}))
    rows = [
        {"cell": f"d/m/{name}", "metric": "hit", "unit": f"u{n}", "value": value, "status": "ok"}
        for name, scores in values.items()
        for n, value in enumerate(scores)
    ]
    frame = pd.DataFrame(rows)
    frame.to_parquet(directory / "scores.parquet")
    for name in ("costs", "explanations"):
        frame[["cell", "unit"]].head(0).assign(elapsed_seconds=1.0).to_parquet(directory / f"{name}.parquet")
    (directory / "quality.csv").write_text("dataset,model,metric,value\n")
    (directory / "config.yaml").write_text("suite: toy\n")
    (directory / "environment.json").write_text("{}")
    return Run(directory)


def emphasis(table: Table, place: int = 0) -> dict[str, str]:
    return {row.name: row.entries[place].emphasis for row in table.rows}


# What stands in a table


def test_a_table_by_hand(tmp_path: Path) -> None:
    run = small_run(
        tmp_path / "run",
        {"good": [1.0, 1.0, 1.0, 0.8], "bad": [0.0, 0.0, 0.2, 0.2], "luck": [0.4, 0.5, 0.4, 0.5]},
        roles={"luck": "floor"},
    )
    (table,) = tables(run)
    assert table.caption == "d, m"
    assert [header.label for header in table.headers] == ["hit ↑"]
    assert [row.label for row in table.rows] == ["good", "bad", "luck (floor)"]
    assert [row.entries[0].number.mean for row in table.rows] == pytest.approx([0.95, 0.1, 0.45])
    low, high = table.rows[0].entries[0].number[1:3]
    assert (low, high) == (pytest.approx(0.85), 1.0)  # 2.5% of the resamples are below, 0.8 thrice is 1.6%
    assert table.rows[0].entries[0].text == "0.950 ± 0.075"
    assert emphasis(table) == {"good": "best", "bad": "second", "luck": ""}
    assert table.leads[0].names == ("good",)
    assert table.leads[0].floors_not_beaten == ()


def test_the_smaller_mean_wins_where_lower_is_better(tmp_path: Path) -> None:
    values = {"a": [0.9, 0.8, 0.9, 0.9, 0.8], "b": [0.1, 0.2, 0.2, 0.1, 0.1]}
    (table,) = tables(small_run(tmp_path / "run", values, direction="lower"))
    assert [row.name for row in table.rows] == ["b", "a"]
    assert emphasis(table) == {"b": "best", "a": "second"}


def test_neither_wins_where_no_direction_is_better(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [0.9, 0.8], "b": [0.1, 0.2]}, direction=""))
    assert emphasis(table) == {"a": "", "b": ""}
    assert table.leads == ()


def test_level_means_that_the_paired_difference_may_be_chance(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    base = draw.normal(0.5, 0.1, 200)  # units differ much more than explainers do
    values = {
        "best": base,
        "level": base - 0.001 + draw.normal(0, 0.05, 200),
        "a bit worse on every unit": base - 0.01,
        "worse": base - 0.2,
    }
    (table,) = tables(small_run(tmp_path / "run", {name: list(v) for name, v in values.items()}))
    found = emphasis(table)
    assert found["best"] == "best" and found["level"] == "best"
    assert (
        found["a bit worse on every unit"] == "second"
    )  # its own interval overlaps, the paired one does not
    assert found["worse"] == ""


def test_a_control_never_wins_and_a_floor_that_is_not_beaten_is_named(tmp_path: Path) -> None:
    values = {"ours": [0.4, 0.6, 0.5, 0.5], "top": [1.0] * 4, "luck": [0.5, 0.5, 0.6, 0.4], "zero": [0.0] * 4}
    run = small_run(tmp_path / "run", values, roles={"top": "bound", "luck": "floor", "zero": "floor"})
    (table,) = tables(run)
    assert emphasis(table) == {"ours": "best", "top": "", "luck": "", "zero": ""}
    assert table.leads[0].floors_not_beaten == ("luck",)
    assert "In 1 of all 1, even the best does no better than a floor (luck)." in render(run, "html")


def test_an_incomplete_cell_cannot_win_and_shows_how_many_units_it_stands_on(run: Run) -> None:
    table = tables(run)[0]
    row = next(row for row in table.rows if row.name == "slow & careful_1")
    best_of_complete = min(r.entries[0].number.mean for r in table.rows if not r.role and r.status == "ok")
    assert row.entries[0].number.mean < best_of_complete
    assert row.entries[0].emphasis == ""
    assert row.entries[0].number.coverage == "100 of 300"
    assert table.notes == ["slow & careful_1: incomplete, 2 of 3 chunks: ended after 30 s"]
    assert [r.name for r in table.rows][3:] == ["slow & careful_1", "exact-contribution", "random"]


def test_units_without_a_value_are_counted_beside_the_mean(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [1.0, math.nan, 0.5], "b": [1.0, 0.0, 0.5]}))
    coverage = {row.name: row.entries[0].number.coverage for row in table.rows}
    assert coverage == {"a": "2 of 3", "b": ""}


def test_an_explainer_does_not_win_by_answering_only_where_it_is_easy(tmp_path: Path) -> None:
    easy, hard = [0.9] * 4, [0.2] * 16
    values = {
        "picky": [*[0.95] * 4, *[math.nan] * 16],
        "thorough": [*easy, *hard],
        "worse": [*easy, *[0.1] * 16],
    }
    (table,) = tables(small_run(tmp_path / "run", values))
    means = {row.name: row.entries[0].number.mean for row in table.rows}
    assert means == pytest.approx({"picky": 0.95, "thorough": 0.34, "worse": 0.26})
    # average ranks: thorough (4 x 2.5 + 16 x 1) / 20 = 1.3, worse 2.1, picky (4 x 1 + 16 x 3) / 20 = 2.6
    assert emphasis(table) == {"picky": "", "thorough": "best", "worse": "second"}


def test_units_that_nobody_has_a_value_for_change_nothing(tmp_path: Path) -> None:
    values = {"a": [0.9, 0.8, 0.9, math.nan], "b": [0.1, 0.2, 0.3, math.nan]}
    (table,) = tables(small_run(tmp_path / "run", values))
    assert emphasis(table) == {"a": "best", "b": "second"}


def test_what_tells_nobody_apart_is_not_counted(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"a": [1.0] * 5, "b": [1.0] * 5})
    assert "Nothing here tells one explainer from another." in render(run, "html")


def test_one_unit_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [0.25], "b": [0.5]}))
    assert [row.entries[0].text for row in table.rows] == ["0.500", "0.250"]
    assert emphasis(table) == {"a": "best", "b": "best"}  # one unit tells nobody apart


def test_outcomes_stand_where_the_number_would(run: Run) -> None:
    table = tables(run)[3]
    found = {row.name: (row.entries[0].text, row.outcome) for row in table.rows}
    assert found["cosine"] == ("failed", "failed: ValueError: <cosine> of an empty profile, 100% wrong_type")
    reason = "needs access weights, which lightgcn does not offer"
    assert found["exact-contribution"] == ("skipped", f"skipped: {reason}")
    assert found["random"][1] == ""
    assert table.problems == ["cosine: failed: ValueError: <cosine> of an empty profile, 100% wrong_type"]


def test_what_was_skipped_has_no_line_but_a_note(run: Run) -> None:
    table = tables(run)[3]
    assert "exact-contribution" in [row.name for row in table.rows]
    assert "exact-contribution" not in [row.name for row in table.lines]
    assert table.absent == "exact-contribution (needs access weights, which lightgcn does not offer)"
    for format in ("md", "latex", "html", "text"):
        assert render(run, format).count("needs access weights, which lightgcn does not offer") >= 2
        assert "skipped: needs access" not in render(run, format)


def test_titles_tell_tables_apart_and_quality_stands_beside_them(run: Run) -> None:
    assert [table.title for table in tables(run)] == [
        "mf · item level", "mf · list level", "lightgcn · item level", "lightgcn · list level"
    ]  # fmt: skip
    assert (
        tables(run)[2].caption == "toy-shop, lightgcn, item level, top 5. Quality: HR@10 0.500, NDCG@10 0.320"
    )


def test_times_are_shown_in_milliseconds_where_they_are_short(run: Run) -> None:
    table = tables(run)[0]
    assert table.headers[-1].label == "ms each ↓"
    costs = run.costs.groupby("cell")["elapsed_seconds"].mean()
    row = next(row for row in table.rows if row.name == "shap")
    assert row.entries[-1].number.mean == pytest.approx(1000 * costs["toy-shop/mf/shap/item/5"])
    assert emphasis(table, -1) == {
        "cosine": "best", "lime-rs": "second", "shap": "", "slow & careful_1": "",
        "exact-contribution": "", "random": "",
    }  # fmt: skip


def test_rows_with_one_name_are_told_apart_by_their_other_labels(run: Run) -> None:
    plan = json.loads((run.directory / "plan.json").read_text())
    plan["layout"]["by"] = ["dataset", "model", "k"]
    (run.directory / "plan.json").write_text(json.dumps(plan))
    names = [row.name for row in tables(Run(run.directory))[0].rows]
    assert len(set(names)) == len(names) == 12
    assert "shap, item level" in names


# Formats


def test_markdown_has_a_table_each_with_emphasis_and_escapes(run: Run) -> None:
    text = render(run, "md")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 4 * 8 - 2  # two were skipped
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    shap = next(line for line in lines if line.startswith("| shap"))
    number = tables(run)[0].rows[1].entries
    assert f"<ins>{number[0].text}</ins>" in shap and f"**{number[1].text}**" in shap
    assert r"slow & careful\_1" in text and r"\<cosine>" in text
    assert "Quality of the model: HR@10 0.490" in text


def test_csv_gives_back_the_numbers_of_the_summary(run: Run) -> None:
    lines = list(csv.DictReader(io.StringIO(render(run, "csv"))))
    summary = run.summary.set_index(["cell", "metric"])
    measured = [line for line in lines if line["metric"]]
    assert len(measured) == 20 * 4
    for line in measured:
        cell = "/".join(line[name] for name in ("dataset", "model", "explainer", "level", "k"))
        expected = summary.loc[(cell, line["metric"])]
        for name in ("mean", "ci_low", "ci_high", "n"):
            assert float(line[name]) == pytest.approx(float(expected[name]), rel=1e-8)
    without = {line["explainer"]: line["status"] for line in lines if not line["metric"]}
    assert without == {"slow & careful_1": "timeout", "cosine": "failed", "exact-contribution": "skipped"}


def test_latex_is_booktabs_escaped_and_balanced(run: Run) -> None:
    text = render(run, "latex")
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\begin{tabular}{lrrrr}") == 4
    unescaped = re.sub(r"\\[{}]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    assert r"slow \& careful\_1" in text
    assert r"\multicolumn{4}{l}{\emph{failed: ValueError: \textless{}cosine\textgreater{}" in text
    assert "POS-P@5 $\\downarrow$ & NEG-P@5 $\\uparrow$ & gini &" in text
    table = tables(run)[0]
    assert rf"\textbf{{{table.rows[0].entries[0].text.replace('±', '$' + chr(92) + 'pm$')}}}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {4}


@pytest.mark.parametrize(
    ("width", "heads", "left_out"),
    [
        (40, "POS-P@5 ↓ ms each", "+2 columns in the report"),
        (65, "POS-P@5 ↓ NEG-P@5 ↑ ms each", "+1 column in the report"),
        (80, "POS-P@5 ↓ NEG-P@5 ↑ gini ms each", ""),
    ],
)
def test_a_terminal_shows_the_columns_that_fit_and_says_what_it_leaves_out(
    run: Run, width: int, heads: str, left_out: str
) -> None:
    out = io.StringIO()
    print_tables(run, Console(file=out, width=width, color_system=None))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    head = next(number for number, line in enumerate(lines) if "POS-P@5" in line)
    assert " ".join(lines[head].split()) == heads
    remarks = " ".join(" ".join(lines).split())
    assert left_out in remarks and bool(left_out) == ("in the report" in remarks)
    first = tables(run)[0].rows[0]
    assert first.entries[0].text.replace(" ± 0.", " ±.") in lines[head + 1]
    assert lines[head + 1].split()[-1] == f"{first.entries[-1].number.mean:.2g}"


def test_a_column_that_repeats_another_is_told_in_a_note(tmp_path: Path) -> None:
    """PN-S and coverage are one thing here; nobody adds; a bias is the same in every line."""
    rows = {"a": ([1.0, 0.0, 1.0], [2, 0, 3]), "b": ([1.0, 1.0, 0.0], [1, 1, 0])}
    metrics = [
        ("PN-S", "higher"),
        ("coverage", "higher"),
        ("size", "lower"),
        ("same size", ""),
        ("adds", ""),
        ("bias", ""),
    ]
    run = small_run(tmp_path / "run", {name: pn_s for name, (pn_s, _) in rows.items()})
    plan = json.loads((run.directory / "plan.json").read_text())
    for cell in plan["cells"]:
        cell["metrics"] = [
            {"name": name, "direction": direction, "range": None, "question": ""}
            for name, direction in metrics
        ]
    (run.directory / "plan.json").write_text(json.dumps(plan))
    values = {
        name: dict(zip([m for m, _ in metrics], (pn_s, pn_s, sizes, sizes, [0] * 3, [0.5] * 3), strict=True))
        for name, (pn_s, sizes) in rows.items()
    }
    frame = pd.DataFrame(
        {"cell": f"d/m/{name}", "metric": metric, "unit": f"u{n}", "value": float(value), "status": "ok"}
        for name, columns in values.items()
        for metric, column in columns.items()
        for n, value in enumerate(column)
    )
    frame.to_parquet(run.directory / "scores.parquet")
    run = Run(run.directory)
    (table,) = tables(run)
    assert [table.headers[place].name for place in table.shown] == ["PN-S", "size"]
    assert table.notes == ["coverage: as PN-S", "same size: as size", "In every line: adds 0, bias 0.5"]
    assert [lead.header.name for lead in table.leads] == ["PN-S", "size"]  # one thing counts once
    for name, _ in metrics:
        assert name in render(run, "csv")
    assert "coverage: as PN-S" in render(run, "latex") and "as PN-S" in "".join(
        Page(render(run, "html")).text
    )


def test_equal_lines_of_the_first_metric_are_ordered_by_the_next(run: Run) -> None:
    scores = run.scores
    scores.loc[scores["metric"] == "POS-P@5", "value"] = 0.5
    scores.to_parquet(run.directory / "scores.parquet")
    (run.directory / "summary.csv").unlink()
    again = Run(run.directory)
    assert [row.name for row in tables(again)[1].rows][:4] == [
        "shap",
        "lime-rs",
        "slow & careful_1",
        "cosine",
    ]


def test_a_report_is_written_where_asked_and_an_unknown_format_is_one_line(run: Run, tmp_path: Path) -> None:
    for format in FORMATS:
        text = render(run, format, tmp_path / "reports" / f"r.{format}")
        assert (tmp_path / "reports" / f"r.{format}").read_text(encoding="utf-8") == text
    with pytest.raises(UserError, match="Did you mean 'latex'"):
        render(run, "latx")


def test_reports_are_the_same_again(run: Run) -> None:
    for format in FORMATS:
        assert render(run, format) == render(Run(run.directory), format)


# The page


class Page(HTMLParser):
    """Collects links and text, and checks that tags are closed in order."""

    void = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def test_the_page_is_whole_and_asks_nobody_for_anything(run: Run) -> None:
    html = write_html(run, in_words="a because of <b>").read_text(encoding="utf-8")
    page = Page(html)
    links = [value for name, value in page.attributes if name in ("href", "src", "action", "data")]
    assert links and all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(page.ids)
    assert "http" not in html.replace("http-equiv", "") and "url(" not in html and "@import" not in html
    text = " ".join("".join(page.text).split())
    assert "a because of <b>" in text and "a because of <b>" not in html
    assert "ValueError: <cosine> of an empty profile, 100% wrong_type" in text
    assert "exact-contribution (needs access weights, which lightgcn does not offer)" in text
    assert "24 cells: 19 ok, 1 partial, 1 timeout, 2 skipped, 1 failed" in text
    assert "up to 300 explanations by each" in text
    assert "seed 0" in text and "packages.numpy" in text and "suite: shop" in text


def test_the_answer_comes_first_and_agrees_with_the_tables(run: Run) -> None:
    html = render(run, "html")
    text = "".join(Page(html).text)
    leads = [lead for table in tables(run) for lead in table.leads if lead.header.column.name != "time"]
    assert all(len(lead.names) < 3 for lead in leads)  # all of them tell somebody apart
    best = {name: sum(name in lead.names for lead in leads) for name in ("lime-rs", "shap", "cosine")}
    most = max(best.values())
    assert f"in {most} of {len(leads)} comparisons" in text
    assert text.index("Which explainer leads?") < text.index("Results")
    for name in (name for name, count in best.items() if count == most):
        assert name in text[text.index("Which explainer leads?") : text.index("comparisons")]


def svgs(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg viewBox.*?</svg>", html, re.DOTALL)]


def test_plots_are_well_formed_named_and_inside_their_frames(run: Run) -> None:
    plots = svgs(render(run, "html"))
    assert len(plots) == 4 * 2 + 4 + 3  # each metric that has a better direction, the costs, and the ranks
    for plot in plots:
        width, height = (float(v) for v in plot.attrib["viewBox"].split()[2:])
        assert plot.attrib["role"] == "img" and plot.attrib["aria-label"]
        for element in plot.iter():
            for name, limit in (("cx", width), ("cy", height), ("x1", width), ("x2", width), ("y", height)):
                if name in element.attrib:
                    assert -1 <= float(element.attrib[name]) <= limit + 1, (element.tag, element.attrib)


def test_a_dot_stands_where_its_mean_is(run: Run) -> None:
    """Pixels are a linear map of the means: checked with the ticks, which are drawn apart from the dots."""
    plot = next(
        p for p in svgs(render(run, "html")) if p.attrib["aria-label"].startswith("NEG-P@5 ↑: mf · item")
    )
    ticks = [
        (float(t.attrib["x"]), float(t.text or "")) for t in plot.iter("text") if t.attrib["class"] == "tick"
    ]
    slope, offset = np.polyfit([value for _, value in ticks], [x for x, _ in ticks], 1)
    dots = {(c[0].text or "").split(":")[0]: float(c.attrib["cx"]) for c in plot.iter("circle")}
    means = {row.name: row.entries[1].number.mean for row in tables(run)[0].rows if not row.role}
    assert dots.keys() == means.keys()
    for name, mean in means.items():
        assert dots[name] == pytest.approx(slope * mean + offset, abs=0.2)


def test_a_run_where_nothing_ran_still_has_every_report(run: Run) -> None:
    plan: dict[str, Any] = json.loads((run.directory / "plan.json").read_text())
    for cell in plan["cells"]:
        cell |= {"status": "skipped", "reason": "no list level", "metrics": []}
    (run.directory / "plan.json").write_text(json.dumps(plan))
    for name in ("scores.parquet", "explanations.parquet", "costs.parquet", "summary.csv"):
        (run.directory / name).unlink()
    nothing = Run(run.directory)
    for format in FORMATS:
        assert "no list level" in render(nothing, format)
    assert "so there is no answer" in "".join(Page(render(nothing, "html")).text)


def test_odd_numbers_do_not_break_the_page(tmp_path: Path) -> None:
    run = small_run(
        tmp_path / "run",
        {
            "constant": [0.5] * 6,
            "<script>alert(1)</script>": [0.5] * 6,
            "nothing": [math.nan] * 6,
            "zero": [0.0] * 6,
        },
    )
    for format in FORMATS:
        render(run, format)
    html = render(run, "html")
    Page(html)
    assert svgs(html)
    assert "<script>alert" not in html
    (table,) = tables(run)
    assert emphasis(table)["constant"] == emphasis(table)["<script>alert(1)</script>"] == "best"


def test_ranks_over_the_tables_put_failures_last(run: Run) -> None:
    """By POS-P@5 over four tables: lime-rs and shap share the first two places, cosine and slow & careful_1
    the rest."""
    plots = [p for p in svgs(render(run, "html")) if p.attrib["aria-label"].startswith("Average ranks")]
    assert len(plots) == 3  # POS-P@5, NEG-P@5, time; gini has no direction
    ranks = {
        name: float(rank)
        for name, rank in re.findall(r"([a-z][^;:]*) (\d\.\d\d)", plots[0].attrib["aria-label"][14:])
    }
    assert ranks.keys() == {"lime-rs", "shap", "cosine", "slow & careful_1"}
    by_hand = {"lime-rs": [], "shap": [], "cosine": [], "slow & careful_1": []}  # type: dict[str, list[float]]
    for table in tables(run):
        means = {
            r.name: r.entries[0].number.mean if r.status == "ok" else math.inf
            for r in table.rows
            if not r.role
        }
        for name, mean in means.items():
            better, same = (sum(f(m, mean) for m in means.values()) for f in (operator.lt, operator.eq))
            by_hand[name].append(better + (same + 1) / 2)
    for name, found in by_hand.items():
        assert ranks[name] == pytest.approx(sum(found) / 4, abs=0.006)
