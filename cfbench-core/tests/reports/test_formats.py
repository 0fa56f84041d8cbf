"""Tables as Markdown, CSV, LaTeX and in a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from html_page import Page
from made_up_run import small_run
from rich.console import Console

from cfbench_core.analyses import Answer
from cfbench_core.errors import UserError
from cfbench_core.reports import FORMATS, print_tables, render
from cfbench_core.reports.analysis import render as render_answer
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run


def test_markdown_has_a_table_each_with_emphasis_and_escapes(run: Run) -> None:
    text = render(run, "markdown")
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
        (40, "POS-P@5 ↓ time (ms)", "+2 columns in the report"),
        (70, "POS-P@5 ↓ NEG-P@5 ↑ time (ms)", "+1 column in the report"),
        (84, "POS-P@5 ↓ NEG-P@5 ↑ gini time (ms)", ""),
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


def test_tables_within_a_text_are_not_folded_at_the_width_of_the_console() -> None:
    row = "  ".join(f"{number:.4f}" for number in range(30))
    answer = Answer(
        "reproduction", "Printed and measured", table=pd.DataFrame({"n": [1]}), text=f"head\n{row}"
    )
    assert len(row) > 200
    assert row in render_answer(answer, [], "table").splitlines()


def test_a_note_replaces_a_column_that_repeats_another(tmp_path: Path) -> None:
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
    assert table.notes == [
        "coverage: identical to PN-S",
        "same size: identical to size",
        "Same for all rows: adds 0, bias 0.5",
    ]
    assert [lead.header.name for lead in table.leads] == ["PN-S", "size"]  # one thing counts once
    for name, _ in metrics:
        assert name in render(run, "csv")
    assert "coverage: identical to PN-S" in render(run, "latex") and "identical to PN-S" in "".join(
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


def test_a_report_is_written_to_the_given_file_and_an_unknown_format_is_one_line(
    run: Run, tmp_path: Path
) -> None:
    for format in FORMATS:
        text = render(run, format, tmp_path / "reports" / f"r.{format}")
        assert (tmp_path / "reports" / f"r.{format}").read_text(encoding="utf-8") == text
    with pytest.raises(UserError, match="Did you mean 'latex'"):
        render(run, "latx")


def test_reports_are_the_same_again(run: Run) -> None:
    for format in FORMATS:
        assert render(run, format) == render(Run(run.directory), format)
