"""What the metrics of recommender explanations observe."""

from __future__ import annotations

from cfbench_core.stages import TaskContext
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.remembered_scores import remembering_for_all
from cfbench_recsys.steps.chunks import Chunk


def observe(
    context: TaskContext, chunk: Chunk, answers: FloatArray | Edits
) -> ImplicitObservations | ExplicitObservations:
    """The recommender's responses to the answers of a chunk."""
    model = remembering_for_all(chunk.model)
    if isinstance(answers, Edits):
        return ExplicitObservations(model, chunk.targets, answers, chunk.split.profiles)
    return ImplicitObservations(model, chunk.targets, answers, chunk.split.profiles)
