"""Adds vectors to the attention of each layer of a decoder, by hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

ATTENTION = ("self_attn", "attn", "self_attention", "attention")
"""Names of a layer's attention module."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj")


def attentions(model: Any) -> list[Any]:
    """The attention of each layer of a decoder."""
    from torch import nn

    for part in model.modules():
        if isinstance(part, nn.ModuleList) and len(part) == model.config.num_hidden_layers:
            found = [child for layer in part for name, child in layer.named_children() if name in ATTENTION]
            if len(found) == len(part):
                return found
    raise UserError(
        f"xrec: no attention is found in the layers of a {type(model).__name__}; 'inject: embeddings' needs none"
    )


def projections(model: Any) -> list[Any]:
    """The projections of queries, keys and values in each layer's attention.

    Raises:
        UserError: if there are none of these names, or their outputs are not as wide as the hidden states.
    """
    found = [getattr(one, name, None) for one in attentions(model) for name in PROJECTIONS]
    width = model.get_input_embeddings().embedding_dim
    if any(getattr(one, "out_features", None) != width for one in found):
        raise UserError(
            f"xrec: variant: paper adds vectors to queries, keys and values, which must be as wide as the hidden states"
            f" ({width}), as in Llama-2-7b; those of this {type(model).__name__} are not: use variant: cfbench"
        )
    return found


@contextlib.contextmanager
def injected(parts: Sequence[Any], added: Tensor | None, behind: bool = False) -> Iterator[None]:
    """Within the context, ``added`` is added to the input of these modules, or to their output (``behind``)."""

    def before(part: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if args:
            return (args[0] + added, *args[1:]), named
        return args, {**named, "hidden_states": named["hidden_states"] + added}

    def after(part: Any, args: tuple[Any, ...], found: Any) -> Any:
        return found + added

    handles = [
        part.register_forward_hook(after)
        if behind
        else part.register_forward_pre_hook(before, with_kwargs=True)
        for part in parts
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
