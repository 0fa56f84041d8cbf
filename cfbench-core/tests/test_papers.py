"""References of components: read from papers.toml, shown short, in full and as BibTeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.papers import Paper, papers_for, papers_of, short_references, unique_papers
from cfbench_core.specs import ComponentSpec

LISTED = """
[brin1997]
authors = ["Brin, Sergey", "Motwani, Rajeev", "Ullman, Jeffrey", "Tsur, Shalom"]
title = "Dynamic itemset counting & implication rules"
venue = "Proceedings of SIGMOD"
year = 1997
doi = "10.1145/253260.253325"

[zed2020]
authors = ["Zed, Zoe"]
title = "On {LIME}"
year = 2020
arxiv = "2001.00001"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package that lists two papers; its name is new for each test."""
    name = f"papers_of_{request.node.name.partition('[')[0]}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / name / "papers.toml").write_text(LISTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def citing(package: str, *papers: str) -> ComponentSpec:
    return ComponentSpec(id="toy/metric/lift", summary=".", target=f"{package}.lift:Lift", papers=papers)


@pytest.mark.parametrize(
    ("authors", "short"),
    [
        (("Zed, Zoe",), "Zed 2020"),
        (("Nóbrega, Caio", "Marinho, Leandro"), "Nóbrega & Marinho 2020"),
        (("Barkan, Oren", "Bogina, Veronika", "Gurevitch, Liya"), "Barkan et al. 2020"),
    ],
)
def test_a_reference_is_shortened_to_names_and_year(authors: tuple[str, ...], short: str) -> None:
    assert Paper(key="k", authors=authors, title="T", year=2020).short() == short


def test_papers_are_read_by_key(package: str) -> None:
    papers = papers_of(package)

    assert sorted(papers) == ["brin1997", "zed2020"]
    assert papers["brin1997"].url == "https://doi.org/10.1145/253260.253325"
    assert papers["zed2020"].url == "https://arxiv.org/abs/2001.00001"
    assert papers["brin1997"].authors[0] == "Brin, Sergey"


def test_a_package_without_papers_lists_none() -> None:
    assert papers_of("cfbench_core") == {}


def test_bibtex_escapes_special_characters_and_protects_capitals(package: str) -> None:
    assert papers_of(package)["brin1997"].bibtex() == (
        "@inproceedings{brin1997,\n"
        "  author = {Brin, Sergey and Motwani, Rajeev and Ullman, Jeffrey and Tsur, Shalom},\n"
        "  title = {{Dynamic itemset counting \\& implication rules}},\n"
        "  booktitle = {Proceedings of SIGMOD},\n"
        "  year = {1997},\n"
        "  doi = {10.1145/253260.253325},\n"
        "}"
    )
    assert "@misc{zed2020," in papers_of(package)["zed2020"].bibtex()
    assert "archiveprefix = {arXiv}" in papers_of(package)["zed2020"].bibtex()


def test_the_papers_of_components_are_listed_once(package: str) -> None:
    specs = [citing(package, "zed2020", "brin1997"), citing(package, "zed2020"), citing(package)]

    assert [paper.key for paper in unique_papers(specs)] == ["brin1997", "zed2020"]
    assert short_references(specs[0]) == "Zed 2020; Brin et al. 1997"


def test_a_paper_that_is_not_listed_is_an_error_but_does_not_break_a_table(package: str) -> None:
    spec = citing(package, "missing1999")

    with pytest.raises(ValueError, match=f"toy/metric/lift cites 'missing1999', which {package}/papers.toml"):
        papers_for(spec)
    assert short_references(spec) == "missing1999"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[k]\nauthors = ['A, B']\nyear = 2020\n", "paper k needs 'title'"),
        (
            "[k]\nauthors = ['A, B']\ntitle = 'T'\nyear = 2020\njournal = 'J'\n",
            "paper k has no key 'journal'",
        ),
        ("[k]\nauthors = []\ntitle = 'T'\nyear = 2020\n", "needs a list of authors"),
        (
            "[k]\nauthors = ['A, B']\ntitle = 'T'\nyear = 2020\ndoi = 'https://doi.org/1'\n",
            "without an address",
        ),
        ("[k\n", "papers.toml"),
    ],
)
def test_a_damaged_list_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    (tmp_path / "damaged_papers").mkdir()
    (tmp_path / "damaged_papers" / "__init__.py").write_text("")
    (tmp_path / "damaged_papers" / "papers.toml").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    papers_of.cache_clear()

    with pytest.raises(ValueError) as raised:
        papers_of("damaged_papers")

    assert "papers.toml: " in str(raised.value)
    assert reason in str(raised.value)
