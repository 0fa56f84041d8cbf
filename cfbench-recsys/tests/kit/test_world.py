"""The conformance kit's data and models."""

from __future__ import annotations

import numpy as np

from cfbench_recsys.edits import Edits
from cfbench_recsys.testing.models import GraphModel, kit_models
from cfbench_recsys.testing.world import NEARLY_ALL, ONE_INTERACTION, OTHER_TWIN, TWIN, interactions, split


def test_the_planted_data_has_the_users_that_explainers_stumble_over() -> None:
    graph = interactions()
    assert graph[ONE_INTERACTION].nnz == 1
    assert graph[NEARLY_ALL].nnz == graph.shape[1] - 5
    assert (graph[TWIN] != graph[OTHER_TWIN]).nnz == 0
    assert np.diff(graph.indptr).min() == 1


def test_held_out_interactions_are_not_in_the_training_data() -> None:
    parts = split()
    for part in (parts.validation, parts.test):
        assert (np.diff(part.targets.indptr) == 1).all()
        assert part.targets.multiply(parts.train[part.users]).nnz == 0
        assert (part.inputs != parts.train[part.users]).nnz == 0


def test_the_favoured_item_of_a_kit_model_is_first_for_every_user() -> None:
    graph = interactions()
    all_users = Edits.nothing(np.arange(graph.shape[0]))
    for model in kit_models(graph):
        favouring = model.recommender.favouring(5)
        scores = (
            favouring.score_edits(all_users)
            if isinstance(favouring, GraphModel)
            else favouring.score_profiles(graph)
        )
        assert (scores.argmax(axis=1) == 5).all()


def test_the_embeddings_of_the_kits_graph_model_give_its_scores() -> None:
    graph = interactions()
    model = kit_models(graph)[1].recommender
    scores = model.score_edits(Edits.nothing(np.arange(graph.shape[0])))
    assert np.allclose(model.user_embeddings() @ model.item_embeddings().T, scores, atol=1e-12)
