"""Writes a model that other software trained as weights of a recommender, in the order of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from cfbench_core.config import Document, decode_options
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.registry import installed
from cfbench_recsys.conversion.formats import Format, format_of
from cfbench_recsys.conversion.trained_models import TrainedModel, read_model
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.recommenders.training import State

SHOWN = 5
"""Identifiers that a message names."""


@dataclass(frozen=True)
class Conversion:
    """What was written.

    Attributes:
        path: the weights, a safetensors file.
        title: what the source is.
        recommender: the one of cfbench that takes the weights.
        options: its options that belong to the weights.
        remarks: what was left out.
    """

    path: Path
    title: str
    recommender: str
    options: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    def entry(self) -> str:
        """As it stands among the ``recommenders`` of a configuration."""
        parts = {"name": self.recommender, **self.options, "weights": str(self.path)}
        return "{" + ", ".join(f"{name}: {value}" for name, value in parts.items()) + "}"


def convert(
    source: Path,
    data: Interactions,
    out: Path,
    *,
    recommender: str | None = None,
    users: tuple[str, ...] | None = None,
    items: tuple[str, ...] | None = None,
) -> Conversion:
    """Writes the model in the file ``source`` to ``out``, as weights for the users and items of ``data``.

    Args:
        recommender: the one that is to take them, where the file may be of several.
        users, items: identifiers in the order of the file's arrays. Where neither they nor the file say it, the order is
            taken to be that of ``data``: ascending, as numbers if all identifiers are whole numbers.

    Raises:
        UserError: if the file cannot be read as data, is of no known model, or lacks users or items of ``data``; if no
            array has an axis of the given identifiers; or if ``out`` is not called .safetensors.
    """
    if out.suffix != ".safetensors":
        raise UserError(f"{out}: weights are written as .safetensors, so its name must end in this")
    model = read_model(source)
    form = format_of(model, recommender, str(source))
    orders = _Orders(source, data, form, model, users, items)
    arrays = orders.applied()
    state = {name: np.ascontiguousarray(array) for name, array in form.state(arrays).items()}
    try:
        options = form.options(arrays, model.options)
    except UserError as error:
        raise UserError(f"{source}: {form.title}: {error}") from None
    _check(source, form, options, state, data)
    write_atomically(out, save(state))
    return Conversion(out, form.title, form.recommender, options, tuple(orders.remarks))


def _check(source: Path, form: Format, options: Mapping[str, Any], state: State, data: Interactions) -> None:
    """The recommender must take the options and the weights, and these must be numbers.

    Raises:
        UserError: if not.
    """
    for name, array in state.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(f"{source}: {name} has values that are not finite")
    registry = installed()
    component = registry.find("recsys", "recommender", form.recommender)
    described = f"{source}: {form.title}, as {form.recommender}"
    recommender = decode_options(component, Document.of(dict(options), described), registry).create()
    try:
        recommender.load_state(state, data.matrix)
    except UserError as error:
        raise UserError(*(f"{source}: {line}" for line in error.lines)) from None


class _Orders:
    """Where the users and items of a dataset stand in the arrays of a file."""

    def __init__(
        self,
        source: Path,
        data: Interactions,
        form: Format,
        model: TrainedModel,
        users: tuple[str, ...] | None,
        items: tuple[str, ...] | None,
    ) -> None:
        self.source, self.form, self.model = source, form, model
        self.wanted = {"users": tuple(data.user_ids.tolist()), "items": tuple(data.item_ids.tolist())}
        self.given = {"users": users or model.users, "items": items or model.items}
        ordered = {axis for axes in form.axes.values() for name in axes for axis in name.split("+")}
        for axis, given in (("users", users), ("items", items)):
            if given is not None and axis not in ordered:
                raise UserError(
                    f"{source}: {form.title} has no array with an order of {axis}, so --{axis} has no effect"
                )
        self.remarks: list[str] = []
        self._found: dict[str, IntArray] = {}

    def applied(self) -> dict[str, np.ndarray]:
        """The arrays of the file in the order of the dataset."""
        found: dict[str, np.ndarray] = {}
        for name, axes in self.form.axes.items():
            array = self.model.arrays[name]
            if array.ndim != len(axes):
                raise UserError(
                    f"{self.source}: {name} must have {len(axes)} axes, has the shape {array.shape}"
                )
            if not array.size:
                raise UserError(f"{self.source}: {name} is empty, it has the shape {array.shape}")
            if axes[0] == "users+items":
                users = len(self.given["users"] or self.wanted["users"])
                found[f"{name}.users"] = self._ordered(array[:users], ("users", *axes[1:]), name)
                found[f"{name}.items"] = self._ordered(array[users:], ("items", *axes[1:]), name)
            else:
                found[name] = self._ordered(array, axes, name)
        return found

    def _ordered(self, array: np.ndarray, axes: tuple[str, ...], name: str) -> np.ndarray:
        for place, axis in enumerate(axes):
            if axis in self.wanted:
                if self.form.padding:
                    array = np.delete(array, 0, axis=place)
                array = np.take(array, self._places(axis, array.shape[place], name), axis=place)
        return array

    def _places(self, axis: str, length: int, name: str) -> IntArray:
        """Where the users or items of the dataset stand among ``length`` of the file."""
        wanted, given = self.wanted[axis], self.given[axis]
        if given is None:
            if length != len(wanted):
                raise UserError(
                    f"{self.source}: {name} has {length} {axis}, the data set has {len(wanted)}; give the "
                    f"identifiers in the order of the file (--{axis} FILE, one per line)"
                )
            return np.arange(length)
        if length != len(given):
            raise UserError(
                f"{self.source}: {name} has {length} {axis}, but {len(given)} identifiers are given"
            )
        if axis not in self._found:
            self._found[axis] = self._looked_up(axis, wanted, given)
        return self._found[axis]

    def _looked_up(self, axis: str, wanted: tuple[str, ...], given: tuple[str, ...]) -> IntArray:
        places = {identifier: place for place, identifier in enumerate(given)}
        if len(places) < len(given):
            raise UserError(f"{self.source}: some identifiers of {axis} are given twice")
        missing = [identifier for identifier in wanted if identifier not in places]
        if missing:
            raise UserError(
                f"{self.source}: {len(missing)} of {len(wanted)} {axis} of the data set are not in the model: "
                f"{', '.join(missing[:SHOWN])}{', ...' if len(missing) > SHOWN else ''}"
            )
        if len(given) > len(wanted):
            self.remarks.append(f"{len(given) - len(wanted)} {axis} of the model are not in the data set")
        return np.array([places[identifier] for identifier in wanted], dtype=np.int64)
