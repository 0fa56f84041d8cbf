"""Questions to finished runs: as a Python call, and in the report."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd
import pytest
import toy_analyses
from rich.console import Console
from threadpoolctl import threadpool_info, threadpool_limits

import cfbench_core
from cfbench_core import analyses
from cfbench_core.checksums import write_checksums
from cfbench_core.errors import AnalysisWarning, UserError
from cfbench_core.registry import Component, Plugin, Registry
from cfbench_core.reports import html, render
from cfbench_core.reports.analysis import FORMATS, show
from cfbench_core.reports.analysis import render as render_answer
from cfbench_core.reports.frames import cells
from cfbench_core.run_directory import Run
from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import check_component

STUDY = {
    "suite": "toy",
    "data": {"name": "numbers", "count": 12},
    "models": "times",
    "explainers": ["digits", {"name": "digits", "label": "again"}],
    "executor": "inline",
}


def with_analyses(registry: Registry, *specs: ComponentSpec) -> Registry:
    components = tuple(Component(spec, "cfbench-asks", "2.0") for spec in specs)
    return Registry([*registry.plugins, Plugin("asks", "cfbench-asks", "2.0", "toy_analyses", components)])


@pytest.fixture
def asking(registry: Registry) -> Registry:
    return with_analyses(registry, *toy_analyses.SPECS)


@pytest.fixture
def run(asking: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return cfbench_core.run(STUDY, out=tmp_path / "run", registry=asking)


def section(page: str) -> str:
    (found,) = re.findall(r'<section id="analyses">(.*?)</section>', page, re.S)
    return str(found)


def test_an_answer_is_a_frame_of_unrounded_numbers(run: Run, asking: Registry) -> None:
    table = cfbench_core.analyse("means", run, registry=asking)
    sums = [sum(int(digit) for digit in str(2 * n)) for n in range(12)]
    assert table["explainer"].tolist() == ["digits", "again"]
    assert table["mean"].tolist() == pytest.approx([sum(sums) / 12] * 2, rel=1e-12)


def test_the_report_of_a_run_is_made_on_one_thread(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    asking = with_analyses(registry, toy_analyses.THREADS)
    with threadpool_limits(limits=2):
        if max((library["num_threads"] for library in threadpool_info()), default=1) < 2:
            pytest.skip("no library computes on two threads here")
        run = cfbench_core.run(STUDY, out=tmp_path / "run", registry=asking)
        assert cfbench_core.analyse("threads", run, registry=asking)["threads"].max() == 2
    assert "Threads: [1]." in section((run.directory / "report.html").read_text(encoding="utf-8"))


def test_runs_are_given_by_their_directories_too_and_are_analysed_together(
    run: Run, asking: Registry
) -> None:
    assert len(cfbench_core.analyse("means", str(run.directory), registry=asking)) == 2
    assert len(cfbench_core.analyse("means", [run, run.directory], registry=asking)) == 4


def test_options_are_checked_as_everywhere(run: Run, asking: Registry) -> None:
    assert cfbench_core.analyse("means", run, registry=asking, most=3)["units"].tolist() == [3, 3]
    with pytest.raises(UserError, match=r"means: mots: unknown key. Did you mean 'most'\?"):
        cfbench_core.analyse("means", run, registry=asking, mots=3)
    with pytest.raises(UserError, match="most: must be a whole number >= 1, got '0'"):
        cfbench_core.analyse("means", run, registry=asking, most=0)


def test_what_does_not_apply_says_why(run: Run, asking: Registry) -> None:
    with pytest.raises(UserError, match=r"never does not apply to .*run: it has no tides"):
        cfbench_core.analyse("never", run, registry=asking)
    with pytest.raises(UserError, match="no metric product was measured"):
        cfbench_core.analyse("means", run, registry=asking, metric="product")
    with pytest.raises(UserError, match=r"no analysis 'mean'. Did you mean 'means'\?.*cfbench list analyses"):
        cfbench_core.analyse("mean", run, registry=asking)


def test_runs_of_several_suites_are_not_analysed_together(run: Run, asking: Registry, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    plan = json.loads((run.directory / "plan.json").read_text())
    (tmp_path / "other/plan.json").write_text(json.dumps({**plan, "suite": "shop"}))
    with pytest.raises(UserError, match=r"of one suite.*toy and shop"):
        cfbench_core.analyse("means", [run, tmp_path / "other"], registry=asking)


def test_an_analysis_that_fails_is_named_with_its_owner(run: Run, asking: Registry) -> None:
    failing = with_analyses(asking, toy_analyses.BROKEN)
    said = "toy/analysis/broken of cfbench-asks 2.0 failed: ZeroDivisionError: too few <units>"
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        cfbench_core.analyse("broken", run, registry=failing)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)  # --debug shows it


def test_those_that_apply_are_distinguished_from_those_that_do_not(run: Run, asking: Registry) -> None:
    nowhere = ComponentSpec(id="toy/analysis/nowhere", summary="Where?", target="no_such_module:Nowhere")
    found = analyses.applicable([run], with_analyses(asking, nowhere))
    said = {component.spec.name: incompatibility for component, incompatibility in found}
    assert said["means"] == "" and said["never"] == "it has no tides"
    assert said["nowhere"].startswith("failed: toy/analysis/nowhere of cfbench-asks 2.0 cannot be used")


# In the report


def test_the_report_of_a_run_has_the_answers_after_its_tables(run: Run) -> None:
    page = (run.directory / "report.html").read_text(encoding="utf-8")
    assert page.index('id="tables"') < page.index('id="analyses"') < page.index('id="about"')
    requested = section(page)
    assert "How large are the digits?" in requested and "The first mean is 4.25." in requested
    assert "Means by run" in requested and "Every run is a point." in requested
    (drawn,) = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", requested, re.S)]
    assert drawn.attrib["aria-label"].startswith("Means. sum by run. digits 0: 4.25")
    assert re.search(r"<tr><td>again</td></tr>", requested)
    assert "2 rows of data" in requested
    assert f"cfbench analyse means {run.directory} --format csv" in requested


def test_what_was_not_run_is_folded_away_with_its_reason(run: Run) -> None:
    requested = section((run.directory / "report.html").read_text(encoding="utf-8"))
    folded = requested[requested.index("Analyses not run") :]
    assert "When does the tide come? <em>Not applicable: it has no tides.</em>" in folded


def test_an_analysis_that_fails_loses_its_place_only_and_is_warned_about(run: Run, asking: Registry) -> None:
    failing = with_analyses(asking, toy_analyses.BROKEN)
    with pytest.warns(AnalysisWarning, match="analysis broken failed: ZeroDivisionError: too few <units>"):
        page = render(run, "html", registry=failing)
    requested = section(page)
    assert "This analysis failed: ZeroDivisionError: too few &lt;units&gt;" in requested
    assert "The first mean is 4.25." in requested


def test_without_analyses_the_report_has_no_such_section(run: Run, registry: Registry) -> None:
    assert 'id="analyses"' not in render(run, "html", registry=registry)


def test_a_long_table_is_cut_in_the_page_and_says_so(run: Run, asking: Registry) -> None:
    answer, _ = analyses.answers([run], asking)
    long = pd.DataFrame({"n": range(1234)})
    page = render_answer(analyses.Answer("means", "?", table=long), [run], "html")
    assert page.count("<td class=number>") == 100 and "And 1,134 more rows." in page
    assert answer.table is not None and len(answer.table) == 2


def test_of_many_figures_a_report_has_the_first_and_says_how_to_see_all(run: Run) -> None:
    figures = [analyses.Figure(f"Figure {n}", "<svg></svg>") for n in range(20)]
    answer = analyses.Answer("means", "How many?", table=FRAME, figures=figures)
    in_report = section(html.render(run, answers=[answer]))
    assert in_report.count("<figure") == 12 and in_report.index("8 more figures") > in_report.index(
        "Figure 3"
    )
    assert f"All 20 figures: <code>cfbench analyse means {run.directory} --output means.html" in in_report
    assert render_answer(answer, [run], "html").count("<figure") == 20


def test_the_data_is_named_in_a_report_that_is_written_again(run: Run, asking: Registry) -> None:
    plan = run.directory / "plan.json"
    plan.write_text(plan.read_text().replace('"data": ""', '"data": "numbers (12 of them)"', 1))
    write_checksums(run.directory)
    page = render(Run(run.directory), "html", registry=asking)
    assert "<li>12 of them</li>" in page


# Formats


FRAME = pd.DataFrame(
    {
        "who": ["a|b", "<c>"],
        "share": [0.123456789, float("nan")],
        "count": [1234567, 3],
        "yes": [True, False],
    }
)


def test_numbers_have_four_digits_for_people_and_all_of_them_for_programs(run: Run) -> None:
    answer = analyses.Answer("means", "How many?", words="Many.", table=FRAME)
    written = {form: render_answer(answer, [run], form) for form in FORMATS}
    assert cells(FRAME).rows == (("a|b", "0.1235", "1,234,567", "yes"), ("<c>", "–", "3", "no"))
    assert cells(FRAME).numbers == (False, True, True, False)
    assert written["csv"].splitlines()[1:] == ["a|b,0.123456789,1234567,True", "<c>,,3,False"]
    assert '"share": 0.123456789' in written["json"] and '"share": null' in written["json"]
    assert "| a\\|b | 0.1235 | 1,234,567 | yes |" in re.sub(" +", " ", written["markdown"])
    assert "&lt;c&gt;" in written["html"] and "How many?" in written["html"]
    assert "0.1235" in written["table"] and "Many." in written["table"]


def test_people_get_intervals_in_one_column_and_what_is_the_same_everywhere_in_a_line() -> None:
    frame = pd.DataFrame(
        {"k": [5, 5], "who": ["a", "b"], "mean": [0.5, 1], "ci_low": [0.25, None], "ci_high": [0.75, 2]}
    )
    shown = cells(frame)
    assert shown.heads == ("who", "mean", "95% interval") and shown.numbers == (False, True, True)
    assert shown.rows == (("a", "0.5", "0.25 to 0.75"), ("b", "1", "–"))
    assert shown.in_every_row == "Same for all rows: k 5."


@pytest.mark.parametrize(("width", "left_out"), [(34, ""), (33, "role"), (20, "role")])
def test_a_narrow_terminal_leaves_out_what_follows_from_other_columns(width: int, left_out: str) -> None:
    """The role follows from the explainer; the rest from nothing. All columns take 6 + 10 + 8 + 4 and three gaps of 2."""
    who = ["lime-rs", "random", "popularity"] * 2
    roles = ["", "baseline", "baseline"] * 2
    table = pd.DataFrame(
        {"metric": list("aaabbb"), "explainer": who, "role": roles, "mean": [1, 2, 3, 4, 5, 6.5]}
    )
    out = io.StringIO()
    show(analyses.Answer("means", "?", table=table), Console(file=out, width=width, color_system=None))
    assert ("baseline" in out.getvalue()) == (not left_out)
    said = " ".join(out.getvalue().split())
    assert (f"(too narrow here for: {left_out}; --format csv has all)" in said) == bool(left_out)
    assert "6.5" in said and "popul" in said


def test_a_narrow_terminal_shows_fewer_numbers_rather_than_pieces_of_words() -> None:
    """The first column takes 16 of its 21 letters, each number 7 and a gap of 2: two fit into 36."""
    numbers = {name: [0.12345, 1.5] for name in ("one", "two", "three")}
    table = pd.DataFrame({"who": ["a-rather-long-name-it", "b"], **numbers})
    out = io.StringIO()
    show(analyses.Answer("means", "?", table=table), Console(file=out, width=36, color_system=None))
    said = " ".join(out.getvalue().split())
    assert "who one two" in said and "(too narrow here for: three;" in said
    assert "a-rather-long-na" in said


def test_an_empty_table_is_said_to_be_empty(run: Run) -> None:
    answer = analyses.Answer("means", "How many?", table=FRAME.head(0))
    assert "The table is empty" in render_answer(answer, [run], "table")
    assert "The table is empty" in render_answer(answer, [run], "markdown")
    assert "0 rows" in render_answer(answer, [run], "html")


# Its kit


def test_every_analysis_is_verified_against_the_contract(asking: Registry) -> None:
    assert check_component(toy_analyses.SPECS[0], registry=asking).passed
    wrong = ComponentSpec(id="toy/analysis/wrong", summary="Is it one?", target="toy_suite:Digits")
    failed = {result.check: result.reason for result in check_component(wrong, registry=asking).failures}
    assert "which are missing" in failed["fulfils-its-contract"]
    assert "pandas" in failed["analysis-is-light"]


def test_a_class_of_the_users_own_is_an_analysis_without_a_plugin(run: Run, registry: Registry) -> None:
    table = cfbench_core.analyse("toy_analyses:Imported", run, registry=registry)

    assert not table.empty
    with pytest.raises(UserError, match=r"toy_suite:Digits: an analysis needs incompatibility\(runs\)"):
        cfbench_core.analyse("toy_suite:Digits", run, registry=registry)


def test_a_table_is_written_as_latex() -> None:
    table = pd.DataFrame({"explainer": ["a_b", "50 %"], "value": [0.25, 12.0]})
    answer = analyses.Answer("x", "Which & why?", words="One_two.", table=table)
    written = render_answer(answer, [], "latex")
    assert r"\begin{tabular}{lr}" in written and r"a\_b & 0.25 \\" in written.replace("0.2500", "0.25")
    assert r"50 \%" in written and r"\caption{Which \& why? One\_two.}" in written
    assert written.count(r"\\") == 3
    own = analyses.Answer("x", "q", table=table, latex="% mine\n")
    assert render_answer(own, [], "latex") == "% mine\n"
