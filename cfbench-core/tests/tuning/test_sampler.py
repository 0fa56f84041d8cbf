"""What is tried next."""

from __future__ import annotations

import pytest
from toy_searches import Everything

from cfbench_core.tuning.sampler import Observation, propose
from cfbench_core.tuning.space import Dimension, search_space

SPACE = search_space(Everything)


def earlier(count: int) -> list[Observation]:
    reported: list[Observation] = []
    for number in range(count):
        options = propose(SPACE, reported, "lower", 0, number)
        reported.append(Observation(options, abs(options["rate"] - 0.01) if number % 4 else None))
    return reported


def test_what_comes_next_depends_on_seed_number_and_earlier_trials_alone() -> None:
    reported = earlier(12)
    assert reported == earlier(12)
    following = propose(SPACE, reported, "lower", 0, 12)
    assert following == propose(SPACE, reported, "lower", 0, 12)
    others = [propose(SPACE, reported, "lower", 1, 12), propose(SPACE, reported, "lower", 0, 13)]
    assert following not in others
    assert all(value in dimension for dimension, value in zip(SPACE, following.values(), strict=True))


@pytest.mark.parametrize(("direction", "sign"), [("higher", -1), ("lower", 1)])
def test_what_is_observed_moves_the_search(direction: str, sign: int) -> None:
    space = (Dimension("x", 0, 1),)
    reported = [Observation({"x": place / 20}, sign * abs(place / 20 - 0.8)) for place in range(20)]
    drawn = [propose(space, reported, direction, seed, 20)["x"] for seed in range(40)]
    assert sum(0.7 < x < 0.9 for x in drawn) > 16  # of a draw at random 8


def test_where_it_fails_the_search_does_not_return() -> None:
    space = (Dimension("x", 0, 1),)
    values = [place / 20 for place in range(20)]
    reported = [Observation({"x": x}, None if x > 0.3 else 1 + x) for x in values]
    drawn = [propose(space, reported, "higher", seed, 20)["x"] for seed in range(20)]
    assert sum(x > 0.5 for x in drawn) <= 4  # of a draw at random one half


def test_a_trial_outside_of_the_space_is_not_reported_to_the_sampler() -> None:
    outside = Observation(
        {"rate": 5.0, "size": None, **dict.fromkeys(["kind", "quick", "layers", "inner.rate"])}, 1.0
    )
    assert propose(SPACE, [outside], "lower", 0, 1) == propose(SPACE, [], "lower", 0, 1)
