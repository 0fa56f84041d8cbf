"""The metadata of the components: every key of a spec has a publication, and every publication is used."""

import tomllib
from importlib import resources

from cfbench_core.component_specs import component_specs

PAPERS = tomllib.loads(resources.files("cfbench_tabular").joinpath("papers.toml").read_text("utf-8"))
SPECS = component_specs("cfbench_tabular")


def test_every_key_of_a_spec_has_a_publication_and_every_publication_is_used():
    assert {key for spec in SPECS for key in spec.papers} == set(PAPERS)


def test_every_publication_has_authors_title_venue_and_year():
    for key, paper in PAPERS.items():
        assert all(", " in author for author in paper["authors"]), key
        assert paper["title"] and paper["venue"] and 1900 < paper["year"] < 2030, key
        assert not ({"doi", "arxiv"} <= paper.keys()), key


def test_controls_have_the_roles_of_the_glossary():
    assert {spec.name: spec.role for spec in SPECS if spec.role} == {
        "random": "baseline",
        "exhaustive": "certified",
        "optimum": "certified",
        "tree-optimum": "certified",
    }
