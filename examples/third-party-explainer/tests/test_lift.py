"""An example computed by hand, then the conformance kit."""

import numpy as np
import pytest
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import Check, checks_for, verify
from cfbench_recsys.targets import Context, Targets
from scipy import sparse

from cfbench_explainer_lift.lift import Config, Lift

ID = "recsys/explainer/lift"

# Rows are users, columns items. The last user has items 0, 1 and 2, and item 3 is explained to them.
INTERACTIONS = sparse.csr_matrix([[1.0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 0]])
TRAINING = sparse.csr_matrix([[1.0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]])


def importances(config: Config, target: int = 3) -> list[float]:
    """Of items 0, 1 and 2 for the target."""
    targets = Targets.of(INTERACTIONS, np.array([4]), np.array([[target]]), 1, "item", "user-vector")
    context = Context(model=None, interactions=INTERACTIONS, training=TRAINING, generator=generator)
    return Lift(config).importances(targets, context)[0].tolist()


def test_an_item_whose_users_take_the_target_more_often_than_others_is_above_one() -> None:
    # Three of four training users have item 3; of the three with item 0 two, of the one with item 1 all.
    by_hand = [(2 / 3) / (3 / 4), 1 / (3 / 4), 1]  # no user has item 2
    assert importances(Config(average_users=0)) == pytest.approx(by_hand)


def test_users_of_average_taste_draw_the_lift_towards_one() -> None:
    few, many = importances(Config(average_users=1)), importances(Config(average_users=1000))
    assert few[1] == pytest.approx((1 + 3 / 4) / 2 / (3 / 4))
    assert 1 < many[1] < few[1] < 4 / 3


def test_a_target_that_no_training_user_has_is_told_nothing_by_anything() -> None:
    assert importances(Config(), target=2) == [1, 1, 1]


@pytest.mark.parametrize("check", checks_for(ID), ids=str)
def test_conformance(check: Check) -> None:
    verify(check, ID)
