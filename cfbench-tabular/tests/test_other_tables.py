"""What the documentation says of explainers on MAGIC and Adult, on other tables of CF-tabular and with other rows."""

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.explainers import alibic, dice
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.counterfactual_sets import diversity, inverse_deviations
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.nearest_enemy import nearest_enemies
from cfbench_tabular.explainers.other_class import OtherClass


def setting(study, name, seed, rows, several=1):
    """The network, ``rows`` factuals of each class, drawn with the seed, and the context with all of them."""
    model, encoding, draw = study.network(name), study.encoding(name), np.random.default_rng(seed)
    known = np.concatenate([study.factuals(name, label).astype(float) for label in (0, 1)])
    classes = model.predict_proba(known).argmax(axis=1)
    chosen = np.concatenate([draw.permutation(np.flatnonzero(classes == label))[:rows] for label in (0, 1)])
    units = tuple(f"{seed}-{place}" for place in chosen)
    context = Context(
        encoding, known, lambda unit: generator("test", unit), counterfactuals_per_instance=several
    )
    return model, Factuals(known[chosen], classes[chosen], units), context


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("name", ["BCW", "StatlogGC"])
def test_sets_of_dice_are_apart_and_its_search_follows_the_determinant(study, name, seed):
    model, factuals, context = setting(study, name, seed, rows=10, several=4)

    def sets(**options):
        explainer = dice.DiCE(dice.Config(**options))
        found = Explanation.of(explainer.counterfactuals(model, factuals, context)).stacked()
        given = ~np.isnan(found).any(axis=2)
        assert given[:, 0].all() and given.mean() > 0.8
        own = np.repeat(factuals.classes[:, None], 4, axis=1)[given]
        assert (model.predict_proba(found[given]).argmax(axis=1) != own).all()
        return found

    one, other = np.triu_indices(4, 1)
    found = sets()
    assert np.nanmin(np.linalg.norm(found[:, one] - found[:, other], axis=2)) >= 0.5 - 1e-9
    weights = inverse_deviations(context.background, context.encoding)
    plain = {"minimum_distance": 0.0, "sparsity": "none"}
    both = [sets(**plain, diversity=weight) for weight in (0.0, 1.0)]
    complete = ~np.isnan(both).any(axis=(0, 2, 3))
    without, with_it = (diversity(found[complete], weights).mean() for found in both)
    assert complete.any() and with_it > without


@pytest.mark.parametrize("name", ["BCW", "Wine", "StudentPerf", "StatlogGC"])
def test_alibic_is_no_farther_than_the_nearest_row_by_its_own_objective(study, name):
    model, factuals, context = setting(study, name, seed=11, rows=8)
    found = Explanation.of(alibic.ALIBIC(alibic.Config()).counterfactuals(model, factuals, context)).stacked()
    classes = model.predict_proba(context.background).argmax(axis=1)
    space = Space.of_columns(context.encoding, context.background, classes, "mvdm")
    starts = space.points(factuals.vectors)
    prototypes = OtherClass(space.points(context.background), classes).nearest_means(
        starts, factuals.classes, 1
    )

    def objective(rows):
        points = space.points(rows)
        away, toward = points - starts, points - prototypes
        return 0.5 * np.abs(away).sum(axis=1) + (away**2).sum(axis=1) + 0.2 * (toward**2).sum(axis=1)

    assert not np.isnan(found).any()
    assert (objective(found[:, 0]) <= objective(nearest_enemies(model, factuals, context)) + 1e-9).all()
