"""Growing Spheres as published, against a plain loop over one row at a time."""

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.growing_spheres import SPEC, Config, GrowingSpheres
from cfbench_tabular.table import Column

OPTIONS = {"radius": 0.1, **presets_of(SPEC)["as-published"].options}


def encoding_of(columns):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -9.0), np.full(size, 9.0))


def growing_spheres_of_one_row(is_enemy, x, stream, n, radius):
    """A ball that shrinks by ten until it holds no enemy, then shells, then each change reset that can be."""
    d, enemies = len(x), [x]
    while len(enemies):
        u = stream.normal(size=(n, d + 2))
        ball = x + radius * u[:, :d] / np.sqrt((u**2).sum(axis=1))[:, None]
        enemies = [z for z in ball if is_enemy(z)]
        radius /= 10
    step = radius / 10
    while not len(enemies):
        z = stream.normal(size=(n, d))
        r = stream.uniform(radius**d, (radius + step) ** d, n) ** (1 / d)
        enemies = [x + r[i] * z[i] / np.sqrt(z[i] @ z[i]) for i in range(n)]
        enemies = [z for z in enemies if is_enemy(z)]
        radius += step
    best = min(enemies, key=lambda z: np.linalg.norm(z - x))
    for j in sorted(range(d), key=lambda j: abs(best[j] - x[j])):
        tried = np.where(np.arange(d) == j, x, best)
        if is_enemy(tried):
            best = tried
    return best


@pytest.mark.parametrize(
    ("seed", "radius"),
    [(0, 0.1), pytest.param(1, 0.1, marks=pytest.mark.slow), pytest.param(2, 30.0, marks=pytest.mark.slow)],
)
def test_growing_spheres_as_published_is_the_loop_of_its_authors(explain, network, numbers, seed, radius):
    """Also from a first ball that holds enemies, which shrinks."""
    rows, model = np.random.default_rng(seed).normal(size=(6, 4)), network(4, seed=seed)
    options = {**OPTIONS, "samples": 50, "radius": radius}
    found = explain(GrowingSpheres(Config(**options)), model, numbers(4), rows, rows)
    classes = model.predict_proba(rows).argmax(axis=1)
    for place, (row, own) in enumerate(zip(rows, classes, strict=True)):

        def is_enemy(z, own=own):
            return model.predict_proba(z[None]).argmax() != own

        stream = generator("test", str(place))
        wanted = growing_spheres_of_one_row(is_enemy, row, stream, 50, radius)
        np.testing.assert_allclose(found[place], wanted, atol=1e-9)


def test_growing_spheres_as_published_leaves_immutable_columns_alone(explain, network):
    columns = (Column("a", immutable=True), Column("b"), Column("c"))
    rows, model = np.random.default_rng(0).normal(size=(10, 3)), network(3, seed=1)
    options = {**OPTIONS, "samples": 50, "radius": 10.0, "layers": 400}
    spheres = GrowingSpheres(Config(**options))
    found = explain(spheres, model, encoding_of(columns), rows, rows)
    given = ~np.isnan(found[:, 0])
    assert given.any() and (found[given, 0] == rows[given, 0]).all()
    fixed = encoding_of(tuple(Column(name, immutable=True) for name in "abc"))
    assert np.isnan(explain(spheres, model, fixed, rows, rows)).all()
