"""Generated data: the requested counts, reproducibility, and with something in it to learn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_recsys.datasets.synthetic import Config, Synthetic
from cfbench_recsys.interactions import Interactions


def made(**options: object) -> Interactions:
    dataset = Synthetic(Config(**options))
    return dataset.load(Source.of(dataset.find(DataAccess(offline=True)).parameters()))


def tastes(data: Interactions) -> np.ndarray:
    return np.array([int(name.rpartition(" ")[2]) for name in data.item_names])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_requested_counts_are_generated(data: st.DataObject) -> None:
    users, items = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 30))
    interactions = min(users + items + data.draw(st.integers(0, 50)), users * items)
    options = {
        "exponent": data.draw(st.sampled_from([0.0, 0.8, 1.5])),
        "clusters": data.draw(st.integers(1, items)),
        "loyalty": data.draw(st.sampled_from([0.0, 0.5])),
        "seed": data.draw(st.integers(0, 9)),
    }
    try:
        found = made(users=users, items=items, interactions=interactions, **options)
    except UserError as error:
        assert "hardly any new pairs" in str(error) and interactions > users * items / 3
        return
    assert found.counts() == {"users": users, "items": items, "interactions": interactions}
    assert found.matrix.has_canonical_format and (found.matrix.data == 1).all()
    assert np.diff(found.matrix.indptr).min() >= 1
    assert np.bincount(found.matrix.indices, minlength=items).min() >= 1


def test_equal_options_give_equal_data_and_another_seed_others() -> None:
    first, again, other = made(), made(), made(seed=1)
    assert (first.matrix != again.matrix).nnz == 0
    assert (first.matrix != other.matrix).nnz > 1000
    assert first.counts() == other.counts()


def test_the_numbers_stay_those_of_the_first_release() -> None:
    """Whoever reports a result on it reports it on these interactions."""
    matrix = made().matrix
    assert matrix[0].indices[:6].tolist() == [253, 317, 460, 575, 583, 915]
    assert int((matrix.indices.astype(np.int64) * np.arange(matrix.nnz)).sum()) == 401_908_887_269


def test_popularity_falls_with_the_exponent() -> None:
    """The slope of log popularity over log place; users here take few enough items not to run out of them."""

    def slope(exponent: float) -> float:
        data = made(users=20_000, items=500, interactions=100_000, exponent=exponent, clusters=1)
        counts = np.sort(np.bincount(data.matrix.indices))[::-1][5:200]
        return float(np.polyfit(np.log(np.arange(6, 201)), np.log(counts), 1)[0])

    assert slope(1.0) == pytest.approx(-1.0, abs=0.12)
    assert slope(0.5) == pytest.approx(-0.5, abs=0.12)


def test_users_follow_their_taste_at_the_configured_rate() -> None:
    """Loyal ones take their taste; of the others' choices a tenth falls on it by chance (10 tastes)."""

    def share(loyalty: float) -> float:
        data = made(users=4000, items=2000, interactions=60_000, clusters=10, loyalty=loyalty, exponent=0.3)
        of_item, rows = tastes(data), np.repeat(np.arange(4000), np.diff(data.matrix.indptr))
        table = np.zeros((4000, 10))
        np.add.at(table, (rows, of_item[data.matrix.indices]), 1)
        busy = table.sum(axis=1) >= 30
        return float((table.max(axis=1) / table.sum(axis=1))[busy].mean())

    assert share(0.8) == pytest.approx(0.8 + 0.2 / 10, abs=0.05)
    assert share(0.0) < 0.35


def test_every_taste_has_popular_items() -> None:
    data = made(clusters=5)
    popular = np.argsort(-np.bincount(data.matrix.indices))[:50]
    assert set(tastes(data)[popular]) == set(range(5))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"users": 100, "items": 50, "interactions": 149}, "must be at least 150"),
        ({"items": 5, "users": 5, "interactions": 20, "clusters": 6}, "clusters: must be at most the items"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(options: dict[str, int], line: str) -> None:
    with pytest.raises(UserError, match=line):
        Synthetic(Config(**options)).find(DataAccess())


def test_too_many_interactions_end_in_one_line_not_in_an_endless_search() -> None:
    with pytest.raises(UserError, match="hardly any new pairs"):
        made(users=50, items=50, interactions=2490, exponent=3.0, loyalty=1.0, clusters=10)


def test_memory_is_that_of_the_interactions() -> None:
    """A million among 300,000 users and 200,000 items (a matrix of 480 GB): 60 bytes for each and some."""
    pytest.importorskip("resource", reason="the system does not report a process's peak memory")
    code = (
        "import resource\n"
        "from cfbench_recsys.datasets.synthetic import *\n"
        "import cfbench_recsys.interactions\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "made = Synthetic(Config(users=300_000, items=200_000, interactions=1_000_000, clusters=100))\n"
        "assert made.load(made.find(None)).matrix.nnz == 1_000_000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(answer.stdout) * unit < 400e6
