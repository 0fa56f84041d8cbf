"""The printed numbers of the packages against the text of the papers: every table is read from the text a second time.

The texts are not part of the repository. They are looked for in ``$CFBENCH_PAPERS_DIR``, or in ``papers`` next to the data.
What is compared is the string: "0.50" is another number than "0.5", since its last digit says how it was rounded.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPENINGS = {
    "cfexprec": "Counterfactual explanations (CEs) provide an intuitive way",
    "beyond-top-1": "Beyond Top-1: Addressing Inconsistencies",
    "cf-tabular": "Counterfactual Generating Methods on Tabular Data",
    "statement-factuality": "On the Factual Consistency of Text-based",
}
"""Words on the first page of each paper."""
DATASETS = {"Amazon": "amazon-fashion", "ML1M": "ml-1m", "Yahoo": "yahoo-music"}
METRICS = {"P": "POS-P", "N": "NEG-P", "G": "Gini", "S": "PN-S", "R": "PN-R", "#P": "#Perturb"}
OF_CFEXPREC = {
    "LIME-RS": "lime-rs",
    "SHAP": "shap",
    "PRINCE": "prince",
    "ACCENT": "accent",
    "LXR": "lxr",
    "GREASE": "grease",
    "CF-GNNExplainer": "cf-gnnexplainer",
    "CF2": "cf2",
    "CLEAR": "clear",
    "UNR-Explainer": "unr-explainer",
    "C2Explainer (-add)": "c2explainer",
    "C2Explainer": "c2explainer-add",
}
OF_CF_TABULAR = {
    "AL": "alibic",
    "ALN": "alibic-nograd",
    "CA": "cadex",
    "DI": "dice",
    "GS": "growing-spheres",
    "LO": "lore",
    "MA": "mace",
    "ML": "ml-explain",
    "SE": "sedc",
    "SY": "synas",
}

Key = tuple[str, ...]


def text_of(paper: str) -> str:
    data = Path(os.environ.get("CFBENCH_DATA_DIR", ROOT.parent / "shared" / "data"))
    folder = Path(os.environ.get("CFBENCH_PAPERS_DIR", data.parent / "papers"))
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        if OPENINGS[paper] in text[:3000]:
            return text
    pytest.skip("the texts of the papers are not here (set CFBENCH_PAPERS_DIR to a folder of *.txt)")


def rows_of(distribution: str, name: str) -> list[dict[str, str]]:
    """Read from the sources: this session has no cfbench installed."""
    folder = ROOT / distribution / "src" / distribution.replace("-", "_") / "published"
    with (folder / name).open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def between(text: str, start: str, end: str) -> str:
    """What stands between two strings, both of which the text has."""
    _, found, rest = text.partition(start)
    assert found, start
    inner, found, _ = rest.partition(end)
    assert found, end
    return inner


FILES = {
    "cfexprec.csv": ("cfbench-recsys", "table", "printed", "state"),
    "beyond_top_1.csv": ("cfbench-recsys", "item", "printed", ""),
    "cf_tabular.csv": ("cfbench-tabular", "item", "printed", "authors"),
    "statement_factuality.csv": ("cfbench-text", "table", "value", ""),
}
"""Distribution, and the columns of the table or figure, of the number, and of what a row has that is not printed."""


@pytest.mark.parametrize("name", FILES)
def test_every_printed_number_has_its_page_and_table(name: str) -> None:
    distribution, table, number, instead = FILES[name]
    rows = rows_of(distribution, name)
    assert rows
    for row in rows:
        assert re.fullmatch(r"((table|figure)[ -])?(\d|A1|[IV]+)", row[table]), row
        assert row[number] or row[instead], row
        assert re.fullmatch(r"(-?\d+(\.\d+)?)?", row[number]), row
        assert re.fullmatch(r"(\d+(\.\d+)?)?", row.get("deviation", "")), row
        assert re.fullmatch(r"[1-9]\d?", row["page"]) or not row[number], row
    pages: dict[str, set[str]] = {}
    for row in rows:
        pages.setdefault(row[table], set()).update({row["page"]} - {""})
    assert all(len(found) == 1 for found in pages.values()), pages


# CFExpRec


def cfexprec_table(text: str, number: int, end: str) -> Iterator[tuple[Key, tuple[str, str]]]:
    """Of tables 3, 4 and 5: dataset, explainer, level, k, metric; value and deviation ("-" for both where there is none)."""
    block = between(text, f"Table {number}:", end).replace("-(±", "- (±")
    heads = next(line for line in block.splitlines() if re.match(r"[PS]@3", line)).split()
    columns = [re.sub(r"[↑↓]", "", head).split("@") for head in heads]
    at_list = columns.index(columns[0], 1)
    names = "|".join(re.escape(name) for name in OF_CFEXPREC)
    row = re.compile(
        rf"^(?:(?:{'|'.join(DATASETS)}) )?({names}) ((?:[\d.]+|-)(?: ?(?:[\d.]+|-)){{{len(heads) - 1}}}) ?",
        re.M,
    )
    found = list(row.finditer(block))
    assert found and len(found) % len(DATASETS) == 0
    ends = [one.start() for one in found[1:]] + [len(block)]
    for place, (one, following) in enumerate(zip(found, ends, strict=True)):
        dataset = [*DATASETS.values()][place * len(DATASETS) // len(found)]
        values = one[2].split()
        spread = re.findall(r"\(±([\d.]+)\)", block[one.end() : following])
        spread += ["-"] * (len(values) - len(spread))
        for index, ((metric, k), value, deviation) in enumerate(zip(columns, values, spread, strict=True)):
            level = "list" if index >= at_list else "item"
            yield (f"{number}", dataset, OF_CFEXPREC[one[1]], level, k, METRICS[metric]), (value, deviation)


def cfexprec_printed(text: str) -> Iterator[tuple[Key, tuple[str, str]]]:
    sizes = ("users", "items", "interactions", "interactions per item", "interactions per user", "sparsity")
    block = between(text, "Table 2: Summary", "3.5 Datasets")
    for dataset, name in DATASETS.items():
        values = between(block, f"\n{dataset} ", "\n").replace(",", "").replace("%", "").split()
        for metric, value in zip(sizes, values, strict=True):
            yield ("2", name, "", "", "", metric), (value, "")
    yield from cfexprec_table(text, 3, "investigate the impact of subgraph-based")
    yield from cfexprec_table(text, 4, "ML1M dataset, lead to substantially")
    yield from cfexprec_table(text, 5, "although LXR demonstrates strong")
    block = between(text, "Table 6: Comparison on", "inference time. PRINCE")
    for name, component in OF_CFEXPREC.items():
        line = re.search(
            rf"^{re.escape(name)}(?: \(pre-train\))? ((?:[\d.]+|OOM|-)(?: (?:[\d.]+|OOM|-)){{5}})$",
            block,
            re.M,
        )
        if line is None:
            assert name == "C2Explainer (-add)"
            continue
        places = [(level, dataset) for level in ("item", "list") for dataset in DATASETS.values()]
        for (level, dataset), value in zip(places, line[1].split(), strict=True):
            yield ("6", dataset, component, level, "5", "time"), (value, "")


def test_cfexprec() -> None:
    printed = dict(cfexprec_printed(text_of("cfexprec")))
    ours = {}
    for row in rows_of("cfbench-recsys", "cfexprec.csv"):
        metric = row["metric"].partition("@")[0]
        key = (row["table"], row["dataset"], row["explainer"], row["level"], row["k"], metric)
        absent = {"out of memory": ("-", "OOM"), "not supported": ("-",), "": ()}[row["state"]]
        if row["state"]:
            assert not row["printed"] and printed[key][0] in absent, row
            continue
        ours[key] = (row["printed"], row["deviation"])
    assert ours == {key: value for key, value in printed.items() if value[0] not in ("-", "OOM")}
    assert len(ours) == 431


# Consistency beyond top-1


def test_beyond_top_1() -> None:
    block = between(text_of("beyond-top-1"), "**Table 1:", "## 4 Experiments")
    columns = ("POS-P curve@5", "NEG-P curve@5", "POS-P curve@10", "NEG-P curve@10")
    printed, level = {}, ""
    for line in block.splitlines():
        cells = re.sub(r"</?[bu]>", "", line).split("\t")
        if len(cells) != 6 or not re.fullmatch(r"[\d.]+", cells[2]):
            continue
        level = cells[0].removeprefix("TP") or level
        for metric, value in zip(columns, cells[2:], strict=True):
            printed[level, cells[1].lower(), metric] = value
    ours = {
        (row["checkpoint"], row["explainer"], row["metric"]): row["printed"]
        for row in rows_of("cfbench-recsys", "beyond_top_1.csv")
    }
    assert ours == printed and len(ours) == 72


# CF-tabular


GROUPS = ("numerical", "categorical", "mixed", "total")


def ranks(block: str) -> dict[Key, str]:
    """Of table 4 or 5: group, measure, explainer."""
    found: dict[Key, str] = {}
    groups = iter(GROUPS)
    group = ""
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 12 or not re.fullmatch(r"[\d.]+", cells[2]):
            continue
        if cells[1] == "coverage":
            group = next(groups)
        measure = cells[1].replace("MADD", "MAD").replace("MAD", "MADD")
        found |= {
            (group, measure, name): value
            for name, value in zip(OF_CF_TABULAR.values(), cells[2:12], strict=True)
        }
    return found


def networks(block: str) -> dict[Key, str]:
    """Of table A1: dataset without signs, measure."""
    found: dict[Key, str] = {}
    for line in block.splitlines():
        cells = line.split("\t")
        if len(cells) == 17 and re.fullmatch(r"[\d.]+", cells[11]):
            name = cells[0].lower()
            found |= {(name, "AUC"): cells[11], (name, "accuracy"): cells[14]}
    return found


def seconds(block: str) -> Iterator[tuple[Key, str]]:
    """Of the text on figure 4: group, explainer."""
    for group, part in (
        ("numerical", between(block, "has the best standard deviation", "Therefore")),
        ("categorical", between(block, "had the highest standard deviation", "It is worth observing")),
    ):
        first = re.search(r"just ([\d.]+)", part) if group == "numerical" else None
        if first:
            yield (group, "ml-explain"), first[1].rstrip(",")
        for name, value in re.findall(r"\b([A-Z]{2,3})\b[a-z ]* \(([\d.]+)\)", part):
            yield (group, OF_CF_TABULAR[name]), value
        lowest = re.search(r"ML has again the lowest value \(([\d.]+)\)", part)
        if lowest:
            yield (group, "ml-explain"), lowest[1]


def reproduced(block: str) -> Iterator[tuple[Key, str]]:
    """Of the text on figure 5: group, explainer; "100%" for "maximum", "full" and "all"."""
    always = between(block, "most algorithms—namely ", "—maximum stability")
    for name in re.findall(r"[A-Z]{2,3}", always):
        for group in GROUPS:
            yield (group, OF_CF_TABULAR[name]), "100%"
    assert "it has full stability for all mixed and categorical datasets" in block
    yield from (((group, "mace"), "100%") for group in ("mixed", "categorical"))
    assert "returns the same result for all numerical and categorical datasets" in block
    yield from (((group, "growing-spheres"), "100%") for group in ("numerical", "categorical"))
    for group, name, pattern in (
        ("total", "growing-spheres", r"overall stability of the algorithm be equal to (\d+%)"),
        ("categorical", "alibic", r"only (\d+%) of categorical"),
        ("numerical", "alibic", r"(\d+%) of numerical"),
        ("mixed", "alibic", r"and (\d+%) of mixed"),
        ("numerical", "alibic-nograd", r"where only (\d+%) could"),
        ("categorical", "alibic-nograd", r"for categorical \((\d+%)\)"),
        ("mixed", "alibic-nograd", r"mixed \((\d+%)\)"),
    ):
        match = re.search(pattern, block)
        assert match, pattern
        yield (group, name), match[1]


def cf_tabular_rows(item: str) -> list[dict[str, str]]:
    return [row for row in rows_of("cfbench-tabular", "cf_tabular.csv") if row["item"] == item]


@pytest.mark.parametrize(("item", "end"), [("table 4", "**Table 5.**"), ("table 5", "**Figure 3.**")])
def test_ranks_of_cf_tabular(item: str, end: str) -> None:
    start = f"**{item.capitalize()}.** Average rankings"
    printed = ranks(between(text_of("cf-tabular"), start, end))
    own = {(row["group"], row["measure"], row["explainer"]): row for row in cf_tabular_rows(item)}
    assert {key: row["printed"] for key, row in own.items() if row["printed"]} == printed
    assert len(printed) == 200
    # The authors' tables also have the measures of the constraints; those of table 5 repeat table 4.
    unprinted = {measure for _, measure, _ in own.keys() - printed.keys()}
    assert unprinted == ({"RUC", "RMC"} if item == "table 4" else set())


def test_networks_of_cf_tabular() -> None:
    printed = networks(between(text_of("cf-tabular"), "**Table A1.**", "**Table A2.**"))
    short = {
        "magic": "magicgt",
        "statlog-german-credit": "statloggc",
        "student-performance": "studentperf",
        "internet-advertisements": "internetadv",
        "default-of-credit-card-clients": "defaultofccc",
    }
    ours = {
        (short.get(row["dataset"], row["dataset"].replace("-", "")), row["measure"]): row["printed"]
        for row in cf_tabular_rows("table A1")
    }
    assert ours == printed and len(ours) == 44


def test_words_of_cf_tabular_on_figures_4_and_5() -> None:
    text = text_of("cf-tabular")
    times = dict(seconds(between(text, "Figure 4 shows how long", "**Figure 4.**")))
    ours = {(row["group"], row["explainer"]): row["printed"] for row in cf_tabular_rows("figure 4")}
    assert ours == times and len(ours) == 20
    again = dict(reproduced(between(text, "also evaluates the algorithm stability", "Figure 5. Mean")))
    own = {
        (row["group"], row["explainer"]): f"{float(row['printed']):.0%}"
        for row in cf_tabular_rows("figure 5")
    }
    assert own == again and len(own) == 35


def test_pages_of_cf_tabular_lie_between_its_running_heads() -> None:
    """The text has the head "11, 7274 N of 28" of most pages; a table is on a page from the head above it on."""
    text = text_of("cf-tabular")
    heads = [(one.start(), int(one[1])) for one in re.finditer(r"11, 7274 (\d+) of 28", text)]
    captions = {
        "table 4": "**Table 4.**",
        "table 5": "**Table 5.**",
        "figure 4": "Figure 4 shows how long",
        "figure 5": "This benchmarking study also evaluates the algorithm stability",
        "figure 6": "**Figure 6.**",
        "figure 7": "**Figure 7.**",
        "table A1": "**Table A1.**",
    }
    for item, caption in captions.items():
        at = text.index(caption)
        above = max(page for start, page in heads if start < at)
        below = min(page for start, page in heads if start > at)
        pages = {row["page"] for row in cf_tabular_rows(item)} - {""}
        assert len(pages) == 1 and above <= int(pages.pop()) < below, item


# Statement factuality


def plain(cell: str) -> str:
    """Without LaTeX and spaces: "\\textbf{0.8} {\\pm} 0.1" is "0.8±0.1"."""
    cell = cell.replace(r"\pm", "±").replace(r"\!", "")
    cell = re.sub(r"\\(?:begin|end)\{array\}(?:\{c\})?|\\[a-z]+", "", cell)
    return re.sub(r"\s*(±)\s*|- (?=\d)", lambda one: one[1] or "-", re.sub(r"[{}$]", "", cell))


def factuality_table(text: str, number: str, end: str) -> Iterator[tuple[Key, tuple[str, str]]]:
    """Table, dataset, metric, generator; value and deviation."""
    block = between(text, f"TABLE {number}\n", end)
    lines = [line.split("\t") for line in block.splitlines() if "\t" in line]
    generators = [name.lower() for name in lines[0][2:]]
    dataset = ""
    for cells in lines[1:]:
        dataset = cells[0].lower() or dataset
        metrics = cells[1].split()
        for generator, cell in zip(generators, cells[2:], strict=True):
            pairs = re.findall(r"(-?\d+\.\d+)±(\d+\.\d+)", plain(cell))
            for metric, pair in zip(metrics, pairs, strict=True):
                yield (number, dataset, metric, generator), pair


def factuality_printed(text: str) -> Iterator[tuple[Key, tuple[str, str]]]:
    lines = between(text, "TABLE II DATASETS STATISTICS", "sentiments. The categories").strip().splitlines()
    names = [name.lower() for name in lines[0].split()]
    for line in lines[1:]:
        metric, *values = line.split("\t")
        for dataset, value in zip(names, values, strict=True):
            if value:
                yield ("II", dataset, metric, ""), (value.replace(" ", ""), "")
    ends: Mapping[str, str] = {
        "III": "- 1) Baselines",
        "IV": "Fig. 2.",
        "V": "D. Standard NLI",
        "VI": "VI. DISCUSSION",
        "VII": "Limitations Our work",
    }
    for number, end in ends.items():
        yield from factuality_table(text, number, end)


def test_statement_factuality() -> None:
    printed = dict(factuality_printed(text_of("statement-factuality")))
    ours = {
        (row["table"], row["domain"], row["metric"], row["generator"]): (row["value"], row["deviation"])
        for row in rows_of("cfbench-text", "statement_factuality.csv")
    }
    assert ours == printed and len(ours) == 745
