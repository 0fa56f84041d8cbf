"""One small run for all analyses."""

import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed

STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "generators": [
        "item-review",
        {"name": "item-review", "label": "again"},
        {"name": "most-frequent", "of": "item"},
        "reference",
        "shuffled-reference",
    ],
    "judges": ["overlap"],
}


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield api.run(STUDY, out=tmp_path_factory.mktemp("runs") / "study")


@pytest.fixture(scope="session")
def answer(run):
    """``answer("topics")``: what an analysis says of the run."""
    return lambda name, **options: run_analysis(find(name, [run], installed()), [run], installed(), options)
