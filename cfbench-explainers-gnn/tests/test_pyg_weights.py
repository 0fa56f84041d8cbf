"""What the recommender pyg computes is determined by its weights, in the precision in which they are stored."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.pyg_recommender import Config, PyG
from cfbench_recsys.edits import REMOVE, Edits
from cfbench_recsys.splits import Holdout, Split

sys.path.append(str(Path(__file__).parent))  # where the modules are that factory names

USERS, ITEMS = 9, 12


def own(name: str, **options: object) -> Config:
    return Config(factory=f"pyg_example_modules:{name}", options=options, epochs=1)


def graph() -> sparse.csr_matrix:
    drawn = np.random.default_rng(3).random((USERS, ITEMS)) < 0.4
    drawn[np.arange(USERS), np.arange(USERS)] = True
    return sparse.csr_matrix(drawn.astype(float))


def weights_of(config: Config) -> dict[str, np.ndarray]:
    """Random ones, in double precision."""
    torch.manual_seed(0)
    wrapper = PyG(config)._created((USERS, ITEMS)).wrapper.double()
    for parameter in wrapper.parameters():
        torch.nn.init.normal_(parameter)
    return {name.removeprefix("module."): part.numpy() for name, part in wrapper.state_dict().items()}


def split_of(interactions: sparse.csr_matrix) -> Split:
    users = np.arange(USERS)
    held_out = Holdout(users, interactions, sparse.csr_matrix(1 - interactions.toarray()))
    return Split(interactions, interactions, held_out, held_out, users)


def test_a_module_with_random_numbers_outside_its_weights_is_refused() -> None:
    """Each task creates the module again: each would explain another model."""
    config = own("RandomFeatures")
    message = (
        "RandomFeatures computes something else when it is created again with the same weights: does it draw"
    )
    with pytest.raises(UserError, match=message):
        PyG(config).load_state(weights_of(config), graph())
    with pytest.raises(UserError, match=message):
        PyG(config).fit(split_of(graph()), lambda *name: np.random.default_rng(0))


@pytest.mark.parametrize("options", [{"persistent": True}, {"seed": 5}])
def test_random_numbers_that_are_stored_or_seeded_are_the_same_in_each_task(options: dict[str, int]) -> None:
    config, nothing = own("RandomFeatures", **options), Edits.nothing(np.arange(USERS))
    fitted = PyG(config)
    fitted.fit(split_of(graph()), lambda *name: np.random.default_rng(0))
    restored = PyG(config)
    restored.load_state(fitted.state(), graph())
    np.testing.assert_array_equal(restored.score_edits(nothing), fitted.score_edits(nothing))


@pytest.mark.parametrize("name", ["TwoTables", "UnionLightGCN"])
def test_weights_in_double_precision_are_not_rounded(name: str) -> None:
    config = own(name, **({"embedding_dim": 5, "num_layers": 2} if name == "UnionLightGCN" else {}))
    weights, interactions = weights_of(config), graph()
    model = PyG(config)
    model.load_state(weights, interactions)
    wrapper = PyG(config)._created((USERS, ITEMS)).wrapper.double()
    wrapper.load_state_dict({f"module.{key}": torch.from_numpy(part) for key, part in weights.items()})
    users, items = (torch.from_numpy(ends.astype(np.int64)) for ends in interactions.nonzero())
    ends = torch.stack([users, USERS + items])
    edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    with torch.no_grad():
        found = wrapper.eval()(edge_index, torch.ones(edge_index.shape[1], dtype=torch.float64))
    expected = (found[:USERS] @ found[USERS:].T).numpy()
    scores = model.score_edits(Edits.nothing(np.arange(USERS)))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_module_may_have_a_table_called_x() -> None:
    """The name under which the features stand that other modules take as an argument."""
    config = own("TableCalledX", width=5)
    fitted = PyG(config)
    fitted.fit(split_of(graph()), lambda *name: np.random.default_rng(0))
    assert set(fitted.state()) == {"x"}
    with pytest.raises(UserError, match="TwoCalledX has a parameter 'x' and takes 'x' as an argument"):
        PyG(own("TwoCalledX")).load_state(fitted.state(), graph())


def test_scores_on_an_edited_graph_that_are_no_numbers_are_an_error() -> None:
    """Every node has edges when the module is checked; an item without any would rank behind none and before none."""
    config = own("DividesByDegree", embedding_dim=5, num_layers=1)
    dense = sparse.csr_matrix(np.random.default_rng(0).random((USERS, ITEMS)) < 0.7).astype(float)
    model = PyG(config)
    model.load_state(weights_of(config), dense)
    users = dense[:, 4].nonzero()[0].astype(np.int64)
    removed = np.full(len(users), REMOVE, dtype=np.int8)
    edits = Edits(np.array([0]), np.zeros_like(users), users, np.full_like(users, 4), removed)
    with pytest.raises(
        UserError, match=r"DividesByDegree returned NaN .*, on a graph in which 1 nodes have no edges"
    ):
        model.score_edits(edits)
