"""The HTML page: whole, self-contained, and in agreement with the tables."""

from __future__ import annotations

import json
import math
import operator
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_page import Page
from made_up_run import emphasis, small_run

from cfbench_core.reports import FORMATS, render, write_html
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run


def test_the_page_is_complete_and_makes_no_request(run: Run) -> None:
    html = write_html(run, verbalization="a because of <b>").read_text(encoding="utf-8")
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
    by_metric: dict[str, list[tuple[str, ...]]] = {}
    for table in tables(run):
        assert (
            table.lead is not None and table.lead == table.leads[0]
        )  # the first metric, unless one is declared
        by_metric.setdefault(table.lead.header.name, []).append(table.lead.names)
    assert text.index("Best explainer") < text.index("Results")
    for metric, found in by_metric.items():
        assert all(len(names) < 3 for names in found)  # each of them distinguishes some explainers
        best = {name: sum(name in names for names in found) for name in ("lime-rs", "shap", "cosine")}
        most = max(best.values())
        sentence = next(part for part in text.split("By ") if part.startswith(f"{metric}, "))
        assert f"in {most} of {len(found)} tables" in sentence
        assert all((name in sentence.split(" best")[0]) == (count == most) for name, count in best.items())


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
