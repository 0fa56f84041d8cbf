"""Weighted sums of the layers Ã^l of a graph: the polynomial P of ``graph_convolution.py``, times vectors."""

from __future__ import annotations

from typing import Any

Weights = tuple[float, ...]
"""w_0..w_L of the layers, L >= 1; their sum is not 0."""


def weighted_layers(propagation: Any, users: Any, items: Any, weights: Weights) -> tuple[Any, Any]:
    """P E for the embeddings E = ``users`` (users, d), ``items`` (items, d): d columns at once."""
    user_sum, item_sum = weighted(users, weights[0]), weighted(items, weights[0])
    for weight in weights[1:]:
        users, items = propagation.to_users(items), propagation.to_items(users)
        user_sum, item_sum = plus(user_sum, users, weight), plus(item_sum, items, weight)
    return user_sum / sum(weights), item_sum / sum(weights)


def layers_of_units(graphs: Any, users: Any, weights: Weights) -> tuple[Any, Any]:
    """sum_{l >= 1} w_l Ã^l e_u for ``users`` (B,), one for each edited graph.

    Returns what falls on the users (users, B), and on the items (items, B); None where nothing falls.
    """
    values, on_items = graphs.to_items_from(users), True  # layer 1
    user_sum, item_sum = None, weighted(values, weights[1])
    for weight in weights[2:]:
        values = graphs.to_users(values) if on_items else graphs.to_items(values)
        on_items = not on_items
        if on_items:
            item_sum = plus(item_sum, values, weight)
        else:
            user_sum = plus(user_sum, values, weight)
    return user_sum, item_sum


def layers_to_items(graphs: Any, user_values: Any, item_values: Any, weights: Weights) -> Any:
    """sum_l w_l Ã^l v on the items (items, B), v = ``user_values`` (users, B), ``item_values`` (items, B).

    By Horner's rule, w_0 v + Ã (w_1 v + Ã (w_2 v + ...)), each time on the side that ends at the items.
    """
    on_items = len(weights) % 2 == 1
    values = weighted(item_values if on_items else user_values, weights[-1])
    for weight in reversed(weights[:-1]):
        moved = None if values is None else graphs.to_users(values) if on_items else graphs.to_items(values)
        on_items = not on_items
        values = plus(moved, item_values if on_items else user_values, weight)
    return values


def weighted(values: Any, weight: float) -> Any:
    """weight * values, and None for nothing at all. By far the most weights are 1."""
    if not weight:
        return None
    return values if weight == 1 else weight * values


def plus(total: Any, values: Any, weight: float) -> Any:
    """total + weight * values, where None is nothing."""
    added = weighted(values, weight)
    if total is None or added is None:
        return total if added is None else added
    return total + added
