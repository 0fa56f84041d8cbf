"""Splits: what each kind holds out, and that nothing is in two parts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_recsys.interactions import Interactions, from_pairs
from cfbench_recsys.splits import Holdout, Kind, Split, SplitConfig, load_split, make_split, save_split

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CFBENCH_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
KINDS: tuple[Kind, ...] = ("per-interaction", "per-user", "leave-one-out", "temporal")


def data_of(histories: list[set[int]], times: bool = True) -> Interactions:
    pairs = [(str(user), str(item)) for user, history in enumerate(histories) for item in sorted(history)]
    users, items = zip(*pairs, strict=True)
    moments = np.random.default_rng(1).permutation(len(pairs)).astype(float) if times else None
    return from_pairs("data", list(users), list(items), times=moments)


def random_data(users: int = 60, items: int = 30, seed: int = 0, times: bool = True) -> Interactions:
    generator = np.random.default_rng(seed)
    return data_of(
        [set(generator.choice(items, size=generator.integers(1, 12), replace=False)) for _ in range(users)],
        times,
    )


def split_of(data: Interactions, kind: Kind, seed: int = 0, **options: float) -> Split:
    return make_split(data, SplitConfig(kind=kind, **options), np.random.default_rng(seed))  # type: ignore[arg-type]


def edges(matrix: sparse.csr_matrix, users: np.ndarray | None = None) -> set[tuple[int, int]]:
    """(user, item) of each entry; row n is user ``users[n]``."""
    rows, columns = matrix.nonzero()
    rows = rows if users is None else users[rows]
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def kept_back(holdout: Holdout) -> set[tuple[int, int]]:
    return edges(holdout.targets, holdout.users)


def test_leave_one_out_takes_the_last_by_time_and_the_one_before() -> None:
    data = from_pairs("d", list("aaabbc"), list("xyzxyx"), times=np.array([30.0, 10.0, 20.0, 1.0, 2.0, 9.0]))
    split = split_of(data, "leave-one-out")
    assert split.train.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert kept_back(split.test) == {(0, 0), (1, 1)}
    assert kept_back(split.validation) == {(0, 2)}
    assert split.explainable.tolist() == [0, 1, 2]


def test_of_equal_times_the_higher_item_counts_as_later() -> None:
    data = from_pairs("d", list("aaabbb"), list("xyzxyz"), times=np.zeros(6))
    split = split_of(data, "leave-one-out")
    assert kept_back(split.test) == {(0, 2), (1, 2)}
    assert kept_back(split.validation) == {(0, 1), (1, 1)}


def test_temporal_divides_at_one_moment_for_all() -> None:
    users = list("aaaaabbbbb")
    items = list("vwxyzvwxyz")
    times = np.array([0, 1, 2, 3, 8, 4, 5, 6, 7, 9], dtype=float)
    split = split_of(from_pairs("d", users, items, times=times), "temporal")
    assert kept_back(split.test) == {(1, 4)}
    assert kept_back(split.validation) == {(0, 4)}
    assert split.train.nnz == 8


def test_temporal_does_not_separate_interactions_of_one_moment() -> None:
    users, items = list("aabbab"), list("vwvwxx")
    data = from_pairs("d", users, items, times=np.array([0.0, 1, 0, 1, 2, 2]))
    split = split_of(data, "temporal", test=0.2, validation=0.2)
    assert kept_back(split.test) == {(0, 2), (1, 2)}
    assert kept_back(split.validation) == {(0, 1), (1, 1)}
    assert edges(split.train) == {(0, 0), (1, 0)}


def test_temporal_leaves_out_who_was_not_there_before() -> None:
    users = [*"aaaaaaaa", *"bbbbbbbb", "c", "a", "b", "c"]
    items = [*"stuvwxyz", *"stuvwxyz", "s", "0", "0", "t"]
    data = from_pairs("d", users, items, times=np.arange(20.0))
    split = split_of(data, "temporal", test=0.1, validation=0.1)
    assert data.user_ids[split.test.users].tolist() == ["b"]
    assert data.user_ids[split.explainable].tolist() == ["a", "b"]


def test_temporal_says_that_nobody_was_there_before() -> None:
    """The data set may be as large as it likes: its later users are all new."""
    data = from_pairs("d", list("aabbccdd"), list("xyxyxyxy"), times=np.arange(8.0))
    with pytest.raises(UserError) as error:
        split_of(data, "temporal", test=0.25, validation=0.25)
    assert error.value.lines == (
        "split temporal: nothing is left for validation: no user of d has interactions in it and before it, of 4 users "
        "with 8 interactions; another kind of split needs no common moment",
    )


@pytest.mark.parametrize(("last", "said"), [(1.0, "1 different time,"), (2.0, "2 different times,")])
def test_temporal_says_that_times_are_too_few_to_divide_by(last: float, said: str) -> None:
    users, items = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    times = np.where(np.arange(12) < 6, 1.0, last)
    with pytest.raises(UserError) as caught:
        split_of(from_pairs("d", users, items, times=times), "temporal", test=0.25, validation=0.25)
    assert str(caught.value).startswith(
        "split temporal: nothing is left for training: the 12 interactions of d have "
    )
    assert said in str(caught.value)


def test_temporal_needs_times() -> None:
    with pytest.raises(UserError, match="split temporal: data has no times"):
        split_of(random_data(times=False), "temporal")


def test_per_user_takes_the_users_of_the_published_order() -> None:
    data = random_data(users=53)
    split = split_of(data, "per-user")
    order = np.random.RandomState(42).permutation(53)
    assert split.explainable.tolist() == order[:11].tolist()  # ceil(0.2 * 53)
    tested = set(order[:11].tolist())
    validated = set(order[11:16].tolist())  # ceil(0.1 * 42)
    lengths = np.diff(data.matrix.indptr)
    assert set(split.test.users.tolist()) == {user for user in tested if lengths[user] > 1}
    assert set(split.validation.users.tolist()) == {user for user in validated if lengths[user] > 1}
    assert set(split.train.nonzero()[0].tolist()) == set(range(53)) - tested - validated
    assert (split.profiles != data.matrix).nnz == 0


def test_per_user_holds_out_a_fifth_but_at_least_one_and_never_all() -> None:
    data = data_of([set(range(size)) for size in (1, 2, 3, 10, 20) for _ in range(4)])
    split = split_of(data, "per-user", test=0.6, validation=0.6)
    lengths = np.diff(data.matrix.indptr)
    assert set(lengths[split.test.users].tolist()) == {2, 3, 10, 20}
    for holdout in (split.test, split.validation):
        back = np.diff(holdout.targets.indptr)
        for user, number in zip(holdout.users, back, strict=True):
            assert number == {2: 1, 3: 1, 10: 2, 20: 4}[int(lengths[user])]


def test_the_users_of_ml_1m_are_those_of_the_reference() -> None:
    pd = pytest.importorskip("pandas")
    ratings = DATA / "recsys" / "ml-1m.parquet"
    reference = DATA.parent / "reference" / "golden_ml1m_mf" / "test_users.csv"
    if not ratings.is_file() or not reference.is_file():
        pytest.skip("needs MovieLens 1M and the reference in the same folder (CFBENCH_DATA_DIR)")
    from cfbench_core.data_files import DataAccess
    from cfbench_recsys.datasets.ml_1m import Config, MovieLens1M

    dataset = MovieLens1M(Config(path=str(ratings)))
    data = dataset.load(dataset.find(DataAccess(offline=True)))
    split = split_of(data, "per-user")
    assert data.user_ids[split.explainable].tolist() == pd.read_csv(reference, dtype=str)["user"].tolist()


def test_per_interaction_divides_eight_to_one_to_one() -> None:
    data = random_data(users=400, items=200)
    split = split_of(data, "per-interaction")
    total = data.matrix.nnz
    assert abs(split.train.nnz / total - 0.8) < 0.03
    assert abs(split.test.targets.nnz / total - 0.1) < 0.02
    assert abs(split.validation.targets.nnz / total - 0.1) < 0.02
    assert (split.profiles != split.train).nnz == 0


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(
    histories=st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=12, max_size=25),
    seed=st.integers(0, 2**32),
)
def test_parts_are_disjoint_and_cover_all_that_can_be_used(
    kind: Kind, histories: list[set[int]], seed: int
) -> None:
    data = data_of(histories)
    try:
        split = split_of(data, kind, seed)
    except UserError as error:
        assert "nothing is left for" in str(error)
        return
    parts = [edges(split.train), kept_back(split.validation), kept_back(split.test)]
    assert sum(len(part) for part in parts) == len(set().union(*parts))
    everything = edges(data.matrix)
    assert set().union(*parts) <= everything
    if kind in ("per-interaction", "leave-one-out"):
        assert set().union(*parts) == everything
        assert (np.diff(split.train.indptr) > 0).all()
    for holdout in (split.validation, split.test):
        assert (np.diff(holdout.targets.indptr) > 0).all()
        assert (np.diff(holdout.inputs.indptr) > 0).all()
        assert not edges(holdout.inputs, holdout.users) & kept_back(holdout)
        assert len(set(holdout.users.tolist())) == len(holdout.users)
        assert holdout.inputs.shape == holdout.targets.shape == (len(holdout.users), data.matrix.shape[1])
    assert (np.diff(split.profiles.indptr)[split.explainable] > 0).all()
    assert not set(split.validation.users.tolist()) & set(split.test.users.tolist()) or kind != "per-user"


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_is_the_same_every_time_and_other_seeds_give_others(kind: Kind) -> None:
    data = random_data(times=kind == "temporal")
    first, same, other = (split_of(data, kind, seed) for seed in (3, 3, 4))
    assert kept_back(first.test) == kept_back(same.test)
    assert first.test.users.tolist() == same.test.users.tolist()
    if kind != "temporal":  # nothing in it is random
        assert kept_back(first.test) != kept_back(other.test)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_survives_the_way_to_disk(kind: Kind, tmp_path: Path) -> None:
    split = split_of(random_data(), kind)
    save_split(split, tmp_path / "split")
    read = load_split(tmp_path / "split")
    pairs = [
        (split.train, read.train),
        (split.profiles, read.profiles),
        (split.validation.inputs, read.validation.inputs),
        (split.validation.targets, read.validation.targets),
        (split.test.inputs, read.test.inputs),
        (split.test.targets, read.test.targets),
    ]
    for matrix, other in pairs:
        assert matrix.shape == other.shape and (matrix != other).nnz == 0
        assert matrix.has_sorted_indices and other.has_sorted_indices
    assert read.explainable.tolist() == split.explainable.tolist()
    assert read.test.users.tolist() == split.test.users.tolist()
    assert read.validation.users.tolist() == split.validation.users.tolist()


def test_too_little_data_and_too_large_shares_are_one_line() -> None:
    with pytest.raises(
        UserError, match=r"split leave-one-out: nothing is left for validation: data is too small"
    ):
        split_of(data_of([{1}, {2, 3}, {4}]), "leave-one-out")
    with pytest.raises(UserError, match=r"test 0\.6 and validation 0\.5 leave nothing to train on"):
        split_of(random_data(), "per-interaction", test=0.6, validation=0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", [{"test": 0.3}, {"validation": 0.3}, {"holdout": 0.4}, {"user_seed": 7}])
def test_an_option_has_an_effect_or_is_refused(kind: Kind, option: dict[str, float]) -> None:
    data = random_data()
    try:
        changed = split_of(data, kind, **option)
    except UserError as error:
        assert str(error) == f"{next(iter(option))}: has no effect with kind: {kind}"
        changed = None
    plain = split_of(data, kind)
    parts = [(one.train, one.validation.targets, one.test.targets) for one in (plain, changed or plain)]
    same = all(a.shape == b.shape and (a != b).nnz == 0 for a, b in zip(*parts, strict=True))
    assert same == (changed is None)
