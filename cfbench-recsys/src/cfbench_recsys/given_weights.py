"""Weights of a recommender that were trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import State, state_from_file
from cfbench_core.plain_text import one_line
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.real_arrays import array_of_tensor, check_real


def given_weights(path: Path, interactions: Interactions, any_shapes: bool = False) -> State:
    """Weights of a user's own: a safetensors file, or a state dict of torch (``.pt``, ``.pth``).

    Axes of users or items follow the order of the dataset's indices; an axis of both has the users first.

    Args:
        any_shapes: the recommender is a module of the user's, which compares the shapes itself.

    Raises:
        UserError: if the file cannot be read safely, an array is not of real numbers, or none has an axis of users, of
            items or of both.
    """
    state = _state_dict(path) if path.suffix in (".pt", ".pth") else state_from_file(path)
    check_real(state, path)
    if any_shapes:
        return state
    users, items = interactions.matrix.shape
    if not any({users, items, users + items} & set(array.shape) for array in state.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in state.items())
        raise UserError(
            f"{path}: no array has {items} items or {users} users of {interactions.name}, or a row for each of both "
            f"(found: {shapes})"
        )
    return state


def _state_dict(path: Path) -> State:
    """The arrays of a state dict; nothing in the file is executed.

    Raises:
        UserError: if it is not a state dict, or has a tensor that is no array.
    """
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises various types for a file that is not a state dict
        first_line = one_line((str(error).strip().splitlines() or [""])[0])
        if "Weights only load failed" in first_line:  # and torch advises to execute what is in the file
            first_line = "it holds more than tensors; save the module's weights by torch.save(module.state_dict(), FILE)"
        reason = first_line or type(error).__name__
        raise UserError(f"{path}: is not a state dict that can be read safely: {reason}") from None
    if not isinstance(found, Mapping):
        raise UserError(f"{path}: must hold a state dict, tensors by name; found {type(found).__name__}")
    for name, value in found.items():
        if not isinstance(value, torch.Tensor):
            raise UserError(
                f"{path}: must hold a state dict, tensors by name; {one_line(str(name))} is {type(value).__name__}. Save "
                "the weights alone: torch.save(module.state_dict(), FILE)"
            )
    return {str(name): array_of_tensor(tensor, str(name), path) for name, tensor in found.items()}
