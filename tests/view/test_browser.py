"""The viewer in a real browser, on a run of each suite: ``nox -s view``.

Needs Playwright and a Chromium (``CFBENCH_CHROMIUM``, or /usr/bin/chromium). ``CFBENCH_AXE``: the file axe.min.js of the npm
package axe-core. ``CFBENCH_SCREENSHOTS``: a folder for pictures. ``CFBENCH_VIEW_RUNS``: a folder with runs recsys, tabular
and text, which are computed otherwise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: nox -s view")

CHROMIUM = os.environ.get("CFBENCH_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = pytest.mark.skipif(not Path(CHROMIUM).is_file(), reason=f"no Chromium at {CHROMIUM}")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
)
SIZES = {"desktop": (1280, 900), "phone": (390, 844), "dark": (1280, 900)}

CUT = """() => {
    const inside = (node) => {
        for (let one = node.parentElement; one; one = one.parentElement)
            if (/auto|scroll|hidden/.test(getComputedStyle(one).overflowX)) return true;
        return false;
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        if (inside(node) || getComputedStyle(node.parentElement).position === "absolute") continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        if ([...range.getClientRects()].some((box) => box.right > innerWidth + 1)) found.push(node.data);
    }
    return found;
}"""
"""The texts that the window cuts at the right, where nothing scrolls to them."""


@pytest.fixture(scope="session")
def address(runs: list[Path]) -> Iterator[str]:
    command = [sys.executable, "-m", "cfbench_core", "view", *map(str, runs), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, "desktop") as one:
        yield one


class opened:  # noqa: N801  used as a function
    """A page of the viewer; whatever its console reports as an error fails the test."""

    def __init__(self, browser: Any, address: str, kind: str) -> None:
        width, height = SIZES[kind]
        scheme = "dark" if kind == "dark" else "light"
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.set_default_timeout(120_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._heard)
        self.page.goto(address)

    def _heard(self, message: Any) -> None:
        if (
            message.type == "error" and "404" not in message.text
        ):  # a request that a test makes wrong on purpose
            self.problems.append(message.text)

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert not self.problems, self.problems


def go(page: Any, place: str) -> None:
    """Opens a state of the viewer by its address alone, as somebody does who was sent a link."""
    page.evaluate(
        """place => new Promise(done => {
            if (location.hash === place) return done();
            addEventListener("hashchange", () => setTimeout(done), {once: true});
            location.hash = place;
        })""",
        place,
    )
    page.wait_for_selector("main:not([aria-busy]) h1")


def unit_of(page: Any, run: int, table: int) -> str:
    """The address of the first unit in the first row of a table that has something to try, if it can be edited."""
    return page.evaluate(
        """async ([run, place]) => {
            const overview = await cfbench.get("overview", {run, quick: "1"});
            const table = overview.tables.filter((one) => one.rows.length)[place];
            const cell = table.rows.find((row) => !row.outcome).cell;
            const units = (await cfbench.get("units", {run, cell})).rows.map((row) => row[0]);
            for (const unit of units) {
                const found = await cfbench.get("unit", {run, table: table.number, unit});
                const editor = found.blocks.find((block) => block.type === "editor");
                if (!editor || (editor.proposals.length > 1 && editor.fields.length > 2))
                    return cfbench.address(["run", run, "table", table.number, "unit", unit]);
            }
        }""",
        [run, table],
    )


def answered(page: Any) -> None:
    page.wait_for_selector("#what-if:not([aria-busy]) .answer section")


def states(page: Any) -> dict[str, str]:
    """The pages that are photographed and checked, by name."""
    return {
        "runs": "#/",
        "tables": "#/run/0",
        "units": "#/run/0/cell/" + str(first_cell(page)),
        "disagreement": "#/run/0/table/1/disagreement?metric=PN-S%405",
        "recommendation": unit_of(page, 0, 1),
        "curves": unit_of(page, 0, 0),
        "row": unit_of(page, 1, 0),
        "constraints": unit_of(page, 1, 0) + "?",
        "text": unit_of(page, 2, 0),
    }


def first_cell(page: Any) -> int:
    overview = page.evaluate("cfbench.get('overview', {run: 0, quick: '1'})")
    tables = [table for table in overview["tables"] if table["rows"]]
    return next(row["cell"] for row in tables[0]["rows"] if not row["outcome"])


def shown(page: Any, name: str, place: str) -> None:
    go(page, place)
    if name in ("recommendation", "row"):
        answered(page)
        proposals = page.locator(".proposals button")
        proposals.nth(1).click()
        answered(page)
        page.wait_for_selector(".proposals button:nth-child(2)[aria-pressed=true]")
    if name == "curves":
        page.locator("#curves > summary").click()
        page.wait_for_selector("#curves svg")
        page.locator("#curves").scroll_into_view_if_needed()
    if name == "constraints":
        answered(page)
        constrain(page)
        page.locator("#again").scroll_into_view_if_needed()


def constrain(page: Any) -> str:
    """Locks the first column and explains again; returns its name."""
    page.locator("#again > summary").click()
    lock = page.locator("#again .lock").first
    name = str(lock.inner_text())
    lock.click()
    page.wait_for_selector("#again .lock[aria-pressed=true]")
    page.locator("#again-go").click()
    page.wait_for_selector(".again-answer section, .again-answer .note.warn")
    return name


def photographed(page: Any, name: str, kind: str) -> None:
    """Takes a picture of a page; it is not cut on a phone, and axe-core finds nothing serious."""
    if folder := os.environ.get("CFBENCH_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/view-{name}-{kind}.png")
    if kind == "phone":
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name}: {wide} pixels too wide"
        assert page.evaluate(CUT) == [], name
    axe = os.environ.get("CFBENCH_AXE")
    if not axe or not Path(axe).is_file():
        pytest.skip("axe-core is not there: npm install axe-core, CFBENCH_AXE=.../axe.min.js")
    page.evaluate(Path(axe).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    bad = [
        (one["id"], one["impact"], one["nodes"][0]["html"][:200], one["nodes"][0].get("failureSummary"))
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert not bad, (name, kind, bad)


@pytest.mark.parametrize("kind", list(SIZES))
def test_every_page_is_accessible_and_photographed(browser: Any, address: str, kind: str) -> None:
    with opened(browser, address, kind) as page:
        page.wait_for_selector("main h1")
        for name, place in states(page).items():
            shown(page, name, place)
            photographed(page, name, kind)


def test_from_the_runs_to_one_unit_by_clicks_alone(page: Any) -> None:
    page.wait_for_selector("main h1")
    page.locator("a.row").first.click()
    page.wait_for_selector("section.table")
    page.locator("section.table td.number a").first.click()
    page.wait_for_selector(".spread figure")
    name = page.locator("a.row").first.inner_text()
    page.locator("a.row").first.click()
    page.wait_for_selector("h1:has-text('" + name.split("/")[0] + "')")
    assert "/unit/" in page.url


def test_the_model_answers_an_edit_and_the_address_keeps_it(page: Any) -> None:
    go(page, unit_of(page, 0, 1))
    answered(page)
    before = page.locator(".answer tbody tr").all_inner_texts()
    assert len(before) == 10 and page.locator(".answer h2").inner_text() == "Recommended list"
    page.locator(".chip").first.click()
    page.wait_for_selector(".answer h2:has-text('List after your edit')")
    after = page.locator(".answer tbody tr").all_inner_texts()
    link = page.url
    assert "edit=" in link and after != before
    page.reload()
    page.wait_for_selector(".answer h2:has-text('List after your edit')")
    assert page.locator(".answer tbody tr").all_inner_texts() == after


def test_an_explainers_answer_to_a_row_changes_the_predicted_class(page: Any) -> None:
    go(page, unit_of(page, 1, 0))
    answered(page)
    assert "unchanged" in page.locator(".answer .facts-list").inner_text()
    page.locator(".proposals button").nth(1).click()
    page.wait_for_selector(".answer .facts-list:has-text('(changed)')")


def test_a_locked_column_stays_when_an_explainer_is_queried_again(page: Any) -> None:
    go(page, unit_of(page, 1, 0))
    answered(page)
    locked = constrain(page)
    rows = page.locator(".again-answer tbody tr").all_inner_texts()
    kept = [row for row in rows if row.startswith(locked)]
    assert rows and len(kept) == 1 and kept[0].rstrip().endswith("·")


def test_curves_are_drawn_when_they_are_opened(page: Any) -> None:
    go(page, unit_of(page, 0, 0))
    page.locator("#curves > summary").click()
    page.wait_for_selector("#curves svg")
    assert page.locator("#curves section").count() == 2


@pytest.mark.parametrize("kind", list(SIZES))
def test_the_page_fills_while_a_run_goes_on(
    browser: Any, runs: list[Path], tmp_path: Path, kind: str
) -> None:
    """A run whose last tasks have not ended: the cells with scores are shown, and more of them when more have ended."""
    from cfbench_core.locks import FolderLock

    directory = tmp_path / "going"
    directory.mkdir()
    for name in ("config.yaml", "environment.json", "components.json"):
        shutil.copy(runs[1] / name, directory / name)
    plan = json.loads((runs[1] / "plan.json").read_text(encoding="utf-8"))
    for cell in plan["cells"]:
        if cell["status"] in ("ok", "cached"):
            cell["status"] = "planned"
    (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = (runs[1] / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    scored = [line for line in lines if json.loads(line)["kind"] == "scores"]
    log = directory / "outcomes.jsonl"
    log.write_text("\n".join(scored[:1]) + "\n", encoding="utf-8")
    lock = FolderLock(directory)
    command = [sys.executable, "-m", "cfbench_core", "view", str(directory), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with opened(browser, server.stdout.readline().strip(), kind) as page:
            page.wait_for_selector("#so-far")
            assert page.locator("main tbody tr").count() == 1
            photographed(page, "progress", kind)
            with log.open("a", encoding="utf-8") as more:
                more.write("\n".join(scored[1:3]) + "\n")
            page.wait_for_selector("main tbody tr:nth-child(3)", timeout=20_000)
    finally:
        lock.release()
        server.terminate()
        server.wait(30)


def test_a_printed_report_of_each_suite_has_at_most_twelve_pages_and_is_not_cut(
    browser: Any, runs: list[Path], tmp_path: Path
) -> None:
    for run in runs:
        context = browser.new_context(viewport={"width": 710, "height": 1000})  # A4 without its margins
        page = context.new_page()
        page.goto((run / "report.html").resolve().as_uri())
        file = tmp_path / f"{run.name}.pdf"
        page.pdf(path=str(file), prefer_css_page_size=True)
        assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", file.read_bytes())) <= 12, run.name
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        cut = page.evaluate(
            """() => [...document.querySelectorAll("main td, main th, main p, main li")]
                .filter((one) => one.getClientRects().length && one.getBoundingClientRect().right > innerWidth + 1)
                .map((one) => one.textContent.slice(0, 40))"""
        )
        assert cut == [], run.name
        context.close()


def test_filters_columns_and_sorting_are_in_the_address(page: Any) -> None:
    go(page, "#/run/0")
    page.wait_for_selector("section.table")
    page.select_option("#filter-role", "baseline")
    page.wait_for_function("document.querySelectorAll('section.table tbody tr:not(.controls)').length === 0")
    assert "role=baseline" in page.url
    page.select_option("#filter-role", "")
    page.locator("#columns-summary").click()
    page.locator("#metric-1").uncheck()
    page.wait_for_function("location.hash.includes('hide=')")
    header = page.locator("section.table th button").first
    header.click()
    page.wait_for_selector("section.table th[aria-sort]")
    assert "sort=" in page.url


def test_units_are_searched_sorted_and_paged(page: Any) -> None:
    go(page, f"#/run/0/cell/{first_cell(page)}?sort=Gini&desc=1")
    page.wait_for_selector("th[aria-sort=descending]")
    user = page.locator("[aria-label=Units] tbody tr td").first.inner_text()
    page.fill("#search", user)
    page.wait_for_function(
        """user => [...document.querySelectorAll("[aria-label=Units] tbody tr td:nth-child(2)")].every(
            (cell) => cell.innerText === user)""",
        arg=user,
    )
    assert page.evaluate("document.activeElement.id") == "search"


def test_keys_move_through_rows_and_pages(page: Any) -> None:
    go(page, "#/run/0/cell/" + str(first_cell(page)))
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("a.row").nth(1).inner_text()
    assert page.evaluate("document.activeElement.innerText") == second
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash.includes('/unit/')")
    page.wait_for_selector("a[rel=next]")
    page.keyboard.press("]")
    page.wait_for_function("unit => !location.hash.endsWith(unit)", arg=second)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")


def test_a_name_is_never_read_as_html(page: Any) -> None:
    go(page, "#/run/0/table/1/unit/" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    assert "was not explained" in page.locator(".problem").inner_text()
    assert page.locator("main img").count() == 0


def test_the_bundle_opens_from_a_file(browser: Any, runs: list[Path], tmp_path: Path) -> None:
    from cfbench_core import view

    index = view.export(runs[1:], tmp_path / "out", units=5)
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(index.as_uri())
    page.wait_for_selector("a.row")
    page.locator("a.row").first.click()
    page.wait_for_selector("section.table")
    page.locator("section.table td.number a").first.click()
    page.wait_for_selector(".spread figure")
    page.fill("#search", "1")
    page.wait_for_function("/^\\d+ of/.test(document.querySelector('.total').innerText)")
    total = int(re.match(r"\d+", page.locator(".total").inner_text())[0])
    assert 0 < page.locator("[aria-label=Units] tbody tr").count() <= min(total, 50)
    page.goto(index.as_uri() + "#/run/0/table/0/disagreement?metric=L2")
    page.wait_for_selector("h1:has-text('disagree')")
    context.close()
    assert not problems
