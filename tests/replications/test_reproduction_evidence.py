"""Evidence for levels of reproduction: what it names exists, and says what the stored tables say."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import AS_PUBLISHED, ReproductionLevel, level_of
from cfbench_core.verdicts import CONFIRMED, REFUTED, UNDECIDED

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
KINDS = ("explainer", "generator", "recommender")


def levels() -> dict[str, ReproductionLevel]:
    components = [found.spec for kind in KINDS for found in installed().components(kind)]
    return {spec.id.split("/", 1)[1]: level for spec in components if (level := level_of(spec))}


def evidence(name: str) -> str:
    return levels()[name].evidence


@pytest.mark.parametrize("name", sorted(levels()))
def test_what_the_evidence_names_exists(name: str) -> None:
    for path in re.findall(r"\b(?:docs|benchmarks)/[\w/.-]+\.(?:csv|md|py)", evidence(name)):
        assert (ROOT / path).is_file(), path
    for test in re.findall(r"\btest_\w+\.py", evidence(name)):
        assert [*ROOT.glob(f"cfbench-*/tests/**/{test}"), *ROOT.glob(f"tests/**/{test}")], test


@pytest.mark.parametrize(
    ("method", "models"),
    [
        ("accent", ["mf"]),
        ("lime-rs", ["mf"]),
        ("shap", ["mf"]),
        ("lxr", ["mf"]),
        ("spinrec", ["mf", "vae", "ncf"]),
    ],
)
def test_native_explainers_gave_the_same_answers(method: str, models: list[str]) -> None:
    assert "the same answers" in evidence(f"explainer/{method}")
    assert all(model.upper() in evidence(f"explainer/{method}") for model in models)
    stored = pd.read_csv(RESULTS / "authors-native.csv").query("method == @method and variant == 'paper'")
    assert stored[["users", "k", "identical answers"]].to_numpy().tolist() == [[20, 5, 1.0]] * len(models)
    assert set(stored["data"]) == {"ml-100k"}
    assert sorted(stored["model"]) == sorted(models)


def test_prince_gave_as_many_answers_of_its_authors_as_the_evidence_names() -> None:
    both = pd.read_csv(RESULTS / "authors-native.csv").query("method == 'prince'").set_index("variant")
    published, stored = both.query("k == 2"), both.query("k == 3")
    assert published["identical answers"].tolist() == [1.0, 1.0]
    assert (published["users"] * published["k"]).tolist() == [10, 10]
    assert published.index.tolist() == ["authors", "paper"] and stored.index.tolist() == [
        "authors",
        "cfbench",
    ]
    assert evidence("explainer/prince").startswith("10 of 10 answers")
    units = stored["users"] * stored["k"]
    assert (stored["identical answers"] * units).round().tolist() == [26, 26] and units.tolist() == [30, 30]
    assert "variant: cfbench 26 of 30" in evidence("explainer/prince")
    assert stored["edits"].nunique() == 1 and "as large on average" in evidence("explainer/prince")


@pytest.mark.parametrize(
    ("method", "table", "row", "share"),
    [
        ("cf-gnnexplainer", "masks", "authors", (20, 20)),
        ("cf2", "masks", "authors", (20, 20)),
        ("c2explainer", "masks", "authors", (20, 20)),
        ("unr-explainer", "searches", "authors", (100, 100)),
        ("grease", "searches", "authors", (19, 20)),
        ("clear", "searches", "authors, double precision", (19, 20)),
        ("clear", "searches", "authors", (16, 20)),
    ],
)
def test_graph_explainers_gave_as_many_sets_of_their_authors(
    method: str, table: str, row: str, share: tuple[int, int]
) -> None:
    same, units = share
    stored = pd.read_csv(RESULTS / f"authors-graph-{table}.csv").query("method == @method and row == @row")
    largest = stored.sort_values("units").iloc[-1]
    assert largest["units"] == units
    assert round(largest["identical"] * units) == same
    stated = f"{same} of {units}" if (method, same) != ("clear", 16) else "16 in single precision"
    assert stated in evidence(f"explainer/{method}")


@pytest.mark.parametrize("generator", ["nrt", "peter", "cer", "pepler", "xrec"])
def test_generators_differ_by_no_more_than_the_evidence_says(generator: str) -> None:
    (limit,) = re.findall(r"within (\d[\d.e-]*\d)", evidence(f"generator/{generator}"))
    stored = pd.read_csv(RESULTS / "authors-generators.csv").query("generator == @generator")
    assert len(stored) == 1
    assert stored[["rating", "log_probabilities", "loss", "gradients"]].to_numpy().max() <= float(limit)


@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("nice", {"adult": 20, "magic": 20, "statlog-german-credit": 20}),
        ("sedc", {"adult": 20, "magic": 20, "statlog-german-credit": 20}),
        ("growing-spheres", {"adult": 3, "magic": 20, "statlog-german-credit": 5}),
        ("mace", {"balance-scale": 20, "iris": 20, "nursery": 20, "tic-tac-toe": 20}),
    ],
)
def test_tabular_searches_gave_the_counterfactuals_of_their_authors(
    method: str, counts: dict[str, int]
) -> None:
    stored = pd.read_csv(RESULTS / "authors-tabular-searches.csv").query(
        "method == @method and row == 'authors'"
    )
    assert dict(zip(stored["data"], stored["factuals"], strict=True)) == counts
    assert (stored["identical"] == 1).all() and (stored["same answered"] == 1).all()
    for count in set(counts.values()):
        assert f"{count} of {count}" in evidence(f"explainer/{method}")


def test_lore_gave_the_counterfactuals_of_its_authors() -> None:
    stored = pd.read_csv(RESULTS / "authors-tabular-searches.csv").query(
        "method == 'lore' and row == 'authors'"
    )
    stored = stored.set_index("data").loc[SETS]
    assert stored["factuals"].tolist() == [20, 20, 20]
    assert (stored["identical"] * 20).round().tolist() == [20, 19, 20]
    assert (stored["same neighbours"] == 1).all()
    assert "20, 19 and 20 of 20 rows" in evidence("explainer/lore")
    assert "all 60 neighbourhoods" in evidence("explainer/lore")


@pytest.mark.parametrize(
    ("row", "same"), [("authors, smaller logit 0", [5, 5, 5]), ("authors", [5, 2, 4])], ids=["paper", "code"]
)
def test_synas_gave_the_counterfactuals_of_its_authors(row: str, same: list[int]) -> None:
    stored = pd.read_csv(RESULTS / "authors-tabular-synas.csv").query("row == @row").set_index("data")
    stored = stored.loc[["iris", "magic", "statlog-german-credit"]]
    assert stored["model"].tolist() == ["mlp, 2 actions", "mlp, 1 action", "mlp, 1 action"]
    assert stored["factuals"].tolist() == [5, 5, 5]
    assert (stored["identical"] * 5).round().tolist() == same
    assert "for 5 of 5 rows" in evidence("explainer/synas") and "5, 2 and 4 of 5" in evidence(
        "explainer/synas"
    )


def test_betarce_is_as_robust_as_its_authors_code() -> None:
    stored = pd.read_csv(RESULTS / "authors-betarce.csv").set_index(["dataset", "row"])
    for name in ("ecoli", "iris"):
        ours, theirs = (stored["retraining"][name, row] for row in ("cfbench", "authors"))
        assert f"{ours:g} against {theirs:g} on {name.title()}" in evidence("explainer/betarce")
    assert (
        stored["L2 to base"].xs("cfbench", level="row") <= stored["L2 to base"].xs("authors", level="row")
    ).all()


GRADIENTS = "authors-tabular-gradients"
SETS = ["magic", "adult", "statlog-german-credit"]


@pytest.mark.parametrize(
    ("method", "row", "factuals", "same"),
    [
        ("cadex", "authors", [20, 20, 20], [20, 20, 20]),
        ("cadex", "authors, double precision", [20, 20, 20], [20, 20, 20]),
        ("ml-explain", "authors, double precision, 20 steps", [20, 20, 20], [20, 20, 20]),
        ("ml-explain", "authors, double precision, decided", [8, 2, 20], [8, 2, 20]),
        ("dice", "authors, double precision, numbers not reset", [8], [8]),
        ("dice", "authors, double precision", [4], [4]),
        ("dice", "authors, double precision, numbers not reset, sets of 4", [8], [4]),
        ("dice", "authors, numbers not reset", [8], [0]),
        ("dice", "authors", [4], [0]),
        ("alibic", "authors, with momentum, double precision, 100 steps", [4, 4, 4], [4, 4, 4]),
        ("alibic", "authors, with momentum, double precision, decided", [3], [3]),
    ],
)
def test_gradient_methods_for_tables_gave_as_many_answers_of_their_authors(
    method: str, row: str, factuals: list[int], same: list[int]
) -> None:
    stored = pd.read_csv(RESULTS / f"{GRADIENTS}.csv").query("method == @method and row == @row")
    stored = stored.set_index("data").reindex([name for name in SETS if name in set(stored["data"])])
    assert stored["factuals"].tolist() == factuals
    assert (stored["identical"] * stored["factuals"]).round().tolist() == same
    assert f"docs/results/{GRADIENTS}.csv" in evidence(f"explainer/{method}")


@pytest.mark.parametrize(
    ("method", "row", "found", "words"),
    [
        ("cadex", "authors", [19, 4, 20], "(19, 4 and 20 of them have a counterfactual)"),
        ("ml-explain", "authors, double precision, 20 steps", [8, 12, 11], "(8, 12 and 11 of them have"),
        ("ml-explain", "authors, double precision, decided", [1, 0, 12], "(1, 0 and 12 have one)"),
    ],
)
def test_the_evidence_names_how_many_factuals_have_a_counterfactual(
    method: str, row: str, found: list[int], words: str
) -> None:
    """Two sides that both find none agree as well."""
    stored = pd.read_csv(RESULTS / f"{GRADIENTS}.csv").query("method == @method and row == @row")
    stored = stored.set_index("data").loc[SETS]
    assert (stored["validity"] * stored["factuals"]).round().tolist() == found
    assert words in evidence(f"explainer/{method}")


CODE, NOT_PAPER = "agrees with the code", "agrees with the code, not with the paper"
FURTHER = {"cfexprec-clear": "clear"}
"""A further run of table 5 of CFExpRec, with 500 users."""
NUMBERS = (
    "replication-cfexprec", "replication-cf-tabular-as-published", "replication-cf-tabular", *FURTHER,
)  # fmt: skip
"""The stored replications with printed numbers of explainers that are compared."""


def compared_numbers() -> pd.DataFrame:
    """The printed numbers of explainers that stored replications decide; a row each, with verdict and setting."""
    tables = []
    for path in [*sorted(RESULTS.glob("replication-*.csv")), *(RESULTS / f"{name}.csv" for name in FURTHER)]:
        table = pd.read_csv(path)
        if path.stem in FURTHER:
            table = table[(table["explainer"] == FURTHER[path.stem]) & (table["variant"] == "paper")]
        if {"item", "explainer", "verdict"} <= {*table.columns}:
            tables.append(table.assign(table=path.stem))
    rows = pd.concat(tables, ignore_index=True)
    decided = rows["verdict"].isin([CONFIRMED, REFUTED, UNDECIDED]) & rows["explainer"].notna()
    rows = rows[decided & ~rows["item"].isin(["claims", "table 6"])].copy()
    rows["component"] = rows["explainer"].str.removesuffix("-add")
    return rows


def numbers_as_published(name: str, level: ReproductionLevel) -> pd.DataFrame:
    """Those of a method as its authors published it; a variant without a name is that if its level names none."""
    rows = compared_numbers()
    rows = rows[rows["component"] == name.removeprefix("explainer/")]
    preset = rows["table"] == "replication-cf-tabular-as-published"
    plain = rows["variant"].isna() & (rows["table"] == "replication-cfexprec") & (level.variant == "")
    return rows[preset | (rows["variant"] == "paper") | plain]


def contradiction(level: str, verdicts: list[str]) -> str:
    """Why a level cannot be stated with these verdicts on printed numbers; empty if it can."""
    confirmed, refuted = verdicts.count(CONFIRMED), verdicts.count(REFUTED)
    agrees = refuted == 0 and 2 * confirmed > len(verdicts)
    if level == AS_PUBLISHED and not agrees:
        return f"{confirmed} of {len(verdicts)} printed numbers are confirmed, {refuted} refuted"
    if level == CODE and verdicts:
        return f"{len(verdicts)} printed numbers were compared"
    if level == NOT_PAPER and (agrees or not verdicts):
        return f"no printed number says so: {confirmed} of {len(verdicts)} confirmed, {refuted} refuted"
    return ""


@pytest.mark.parametrize(
    ("verdicts", "possible"),
    [
        ([], {CODE}),
        ([CONFIRMED, CONFIRMED, UNDECIDED], {AS_PUBLISHED}),
        ([CONFIRMED, UNDECIDED], {NOT_PAPER}),
        ([UNDECIDED], {NOT_PAPER}),
        ([CONFIRMED, CONFIRMED, CONFIRMED, REFUTED], {NOT_PAPER}),
    ],
)
def test_verdicts_on_printed_numbers_leave_one_level_of_those_that_agree_with_the_code(
    verdicts: list[str], possible: set[str]
) -> None:
    assert {
        level for level in (AS_PUBLISHED, CODE, NOT_PAPER) if not contradiction(level, verdicts)
    } == possible
    assert not contradiction("ours only", verdicts)


@pytest.mark.parametrize("name", sorted(name for name in levels() if name.startswith("explainer/")))
def test_no_level_contradicts_the_stored_verdicts_on_printed_numbers(name: str) -> None:
    level = levels()[name]
    verdicts = numbers_as_published(name, level)["verdict"].tolist()
    assert contradiction(level.level, verdicts) == ""


def test_printed_numbers_of_explainers_as_published_were_compared_for_these() -> None:
    found = {name for name, level in levels().items() if len(numbers_as_published(name, level))}
    assert found == {
        *("explainer/accent", "explainer/lime-rs", "explainer/shap", "explainer/lxr", "explainer/prince"),
        *("explainer/cf-gnnexplainer", "explainer/cf2", "explainer/c2explainer", "explainer/unr-explainer"),
        *("explainer/grease", "explainer/clear", "explainer/mace"),
    }
    assert {*compared_numbers()["table"]} == {*NUMBERS}
    assert {*compared_numbers()["item"]} <= {
        *("table-3", "table-4", "table-5"),
        *("table 4", "table 5", "figure 6", "figure 7"),
    }


@pytest.mark.parametrize("name", sorted(name for name, own in levels().items() if own.level == NOT_PAPER))
def test_the_evidence_counts_the_printed_numbers_as_the_stored_tables_do(name: str) -> None:
    level = levels()[name]
    rows = numbers_as_published(name, level)
    said = re.findall(r"(table|figure) (\d): (\d+) of (\d+) refuted, (\d+) confirmed", level.evidence)
    counted = [
        (
            *re.split("[ -]", str(item)),
            str((own["verdict"] == REFUTED).sum()),
            str(len(own)),
            str((own["verdict"] == CONFIRMED).sum()),
        )
        for (_, item), own in rows.groupby(["explainer", "item"])
    ]
    assert said == counted
    for table in rows["table"].unique():
        assert f"docs/results/{table}.csv" in level.evidence
