"""Whose model is it, and how does it become the state of a recommender of cfbench?

Each format names the arrays of the source with their axes, so that users and items can be put into the order of a dataset
before the state is made of them: ``users``, ``items``, or anything else for an axis that stays as it is. An array with
an axis ``users+items`` becomes two, ``NAME.users`` and ``NAME.items``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every call

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line
from cfbench_recsys.conversion.trained_models import TrainedModel
from cfbench_recsys.recommenders.training import State

Arrays = Mapping[str, np.ndarray]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """One kind of trained model.

    Attributes:
        title: for people.
        recommender: the one of cfbench that computes the same scores.
        axes: of the arrays in the source, by name; a file with these arrays is of this format if it has no others, which
            the scores of its model would depend on as well.
        state: makes the state of the recommender from the arrays, in the dataset's order, and the options of the file.
        options: of the recommender, from the arrays and the options of the file.
        kind: what the file must say that it is; empty for files that say nothing.
        padding: whether the first user and item of the arrays stand for none, as in RecBole.
        foreign: options that only other models with these arrays have.
    """

    title: str
    recommender: str
    axes: Mapping[str, tuple[str, ...]]
    state: Callable[[Arrays], State]
    options: Callable[[Arrays, Options], dict[str, Any]] = lambda arrays, options: {}
    kind: str = ""
    padding: bool = False
    foreign: tuple[str, ...] = ()

    def matches(self, model: TrainedModel) -> bool:
        """Whether a file holds a model of this kind, be it with more arrays."""
        return model.kind.casefold() == self.kind.casefold() and set(self.axes) <= set(model.arrays)


def format_of(model: TrainedModel, recommender: str | None, source: str) -> Format:
    """The format of a file; ``recommender`` chooses where several have the same arrays.

    Raises:
        UserError: if there is none, or several, or the file has further arrays: it is another model then.
    """
    found = [form for form in FORMATS if form.matches(model)]
    chosen = [form for form in found if recommender in (None, form.recommender)]
    if not chosen:
        arrays = ", ".join(f"{name} {array.shape}" for name, array in model.arrays.items())
        known = ", ".join(form.title for form in (found or FORMATS))
        of = f" for the recommender {recommender}" if found else ""
        raise UserError(
            f"{source}: no known model{of}; it holds {model.kind or 'arrays'}: {arrays}. Known: {known}"
        )
    if len(chosen) > 1:
        names = " or ".join(form.recommender for form in chosen)
        raise UserError(f"{source}: may be several models; name the recommender: {names}")
    foreign = [name for name in chosen[0].foreign if name in model.options]
    if foreign:
        known = ", ".join(form.title for form in FORMATS)
        raise UserError(
            f"{source}: is not {chosen[0].title}: it has the option '{foreign[0]}', which this has not. Known: {known}"
        )
    further = [name for name in model.arrays if name not in chosen[0].axes]
    if further:
        raise UserError(
            f"{source}: is not {chosen[0].title}: it has further arrays, {one_line(', '.join(further))}, and its scores "
            "would be those of another model without them"
        )
    return chosen[0]


def _number(options: Options, name: str) -> float:
    """An option of a file that must be a number.

    Raises:
        UserError: if it is none, or missing; without the name of the file.
    """
    value = options.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = "is missing" if name not in options else f"must be a number, is {value!r}"
        raise UserError(f"the option '{name}' {what}")
    return float(value)


def _whole_number(options: Options, name: str, most: int = 100) -> int:
    value = _number(options, name)
    if not value.is_integer() or not 0 <= value <= most:
        raise UserError(f"the option '{name}' must be a whole number from 0 to {most}, is {value:g}")
    return int(value)


def _two_towers(profile: str, item: str, item_bias: str, item_axes: str) -> Callable[[Arrays], State]:
    """MF: (W_p x + b_p) . (W_i[:, j] + b_i)."""

    def state(arrays: Arrays) -> State:
        weight = arrays[item]
        return {
            "profile.weight": arrays[f"{profile}.weight"],
            "profile.bias": arrays[f"{profile}.bias"],
            "item.weight": weight.T if item_axes == "items first" else weight,
            "item.bias": arrays[item_bias],
        }

    return state


def _embeddings(users: str, items: str) -> Callable[[Arrays], State]:
    """Graph recommenders: the embeddings before propagation."""
    return lambda arrays: {
        "user_embedding.weight": arrays[users],
        "item_embedding.weight": arrays[items],
    }


def _autoencoder(arrays: Arrays) -> State:
    """VAE with one hidden layer on each side; the encoder's last layer gives the mean, then the log-variance."""
    weight, bias = arrays["encoder.2.weight"], arrays["encoder.2.bias"]
    half = len(bias) // 2
    return {
        "encoder.hidden.weight": arrays["encoder.0.weight"],
        "encoder.hidden.bias": arrays["encoder.0.bias"],
        "encoder.mean.weight": weight[:half],
        "encoder.mean.bias": bias[:half],
        "encoder.log_variance.weight": weight[half:],
        "encoder.log_variance.bias": bias[half:],
        "decoder.hidden.weight": arrays["decoder.0.weight"],
        "decoder.hidden.bias": arrays["decoder.0.bias"],
        "decoder.output.weight": arrays["decoder.2.weight"],
        "decoder.output.bias": arrays["decoder.2.bias"],
    }


def _neighbours(weight: np.ndarray) -> State:
    """ItemKNN from W (items, items), in which W[i, j] is what item i of a profile adds to the score of item j."""
    columns = scipy.sparse.csc_matrix(weight)
    counts = np.diff(columns.indptr)
    shape = (weight.shape[0], max(1, int(counts.max(initial=0))))
    neighbours, similarity = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
    for column in range(shape[0]):
        part = slice(columns.indptr[column], columns.indptr[column + 1])
        order = np.argsort(-columns.data[part], kind="stable")
        neighbours[column, : counts[column]] = columns.indices[part][order]
        similarity[column, : counts[column]] = columns.data[part][order]
    return {"neighbours": neighbours, "similarity": similarity}


_AUTOENCODER = {
    "encoder.0.weight": ("hidden", "items"),
    "encoder.0.bias": ("hidden",),
    "encoder.2.weight": ("latent", "hidden"),
    "encoder.2.bias": ("latent",),
    "decoder.0.weight": ("hidden", "latent"),
    "decoder.0.bias": ("hidden",),
    "decoder.2.weight": ("items", "hidden"),
    "decoder.2.bias": ("items",),
}

FORMATS = (
    Format(
        "the two-tower MF of LXR (users_fc, items_fc)",
        "mf",
        {
            "users_fc.weight": ("d", "items"),
            "users_fc.bias": ("d",),
            "items_fc.weight": ("d", "items"),
            "items_fc.bias": ("d",),
        },
        _two_towers("users_fc", "items_fc.weight", "items_fc.bias", "items last"),
    ),
    Format(
        "the two-tower MF of CFExpRec (users_fc, item_fc, item_bias)",
        "mf",
        {
            "users_fc.weight": ("d", "items"),
            "users_fc.bias": ("d",),
            "item_fc.weight": ("items", "d"),
            "item_bias": ("d",),
        },
        _two_towers("users_fc", "item_fc.weight", "item_bias", "items first"),
    ),
    Format(
        "the VAE of LXR and CFExpRec (encoder.0, ...)",
        "vae",
        _AUTOENCODER,
        _autoencoder,
        lambda arrays, options: {"activation": "relu"},
    ),
    Format(
        "CFExpRec's LightGCN (E0)",
        "lightgcn",
        {"E0.weight": ("users+items", "d")},
        _embeddings("E0.weight.users", "E0.weight.items"),
        lambda arrays, options: {"layers": 3},
    ),
    Format(
        "CFExpRec's SimGCL (E0), whose layers are all the first when it recommends",
        "simgcl",
        {"E0.weight": ("users+items", "d")},
        _embeddings("E0.weight.users", "E0.weight.items"),
        lambda arrays, options: {"layers": 1},
    ),
    Format(
        "RecBole's LightGCN",
        "lightgcn",
        {"user_embedding.weight": ("users", "d"), "item_embedding.weight": ("items", "d")},
        _embeddings("user_embedding.weight", "item_embedding.weight"),
        lambda arrays, options: {"layers": _whole_number(options, "n_layers")},
        kind="recbole LightGCN",
        padding=True,
    ),
    Format(
        "RecBole's MultiVAE with one hidden layer",
        "vae",
        _AUTOENCODER,
        _autoencoder,
        kind="recbole MultiVAE",
        padding=True,
    ),
    Format(
        "RecBole's EASE",
        "ease",
        {"item_similarity": ("items", "items")},
        lambda arrays: {"weight": arrays["item_similarity"]},
        kind="recbole EASE",
        padding=True,
    ),
    Format(
        "RecBole's ItemKNN",
        "item-knn",
        {"weight": ("items", "items")},
        lambda arrays: _neighbours(arrays["weight"]),
        kind="recbole ItemKNN",
        padding=True,
    ),
    Format(
        "implicit's AlternatingLeastSquares",
        "als",
        {"user_factors": ("other users", "d"), "item_factors": ("items", "d")},
        lambda arrays: {"item.factors": arrays["item_factors"]},
        lambda arrays, options: {
            "confidence": _number(options, "alpha"),
            "regularization": _number(options, "regularization"),
        },
        foreign=("learning_rate",),  # of its BPR and LMF, whose scores are others
    ),
    Format(
        "LensKit's ImplicitMFScorer",
        "als",
        {"item_embeddings": ("items", "d")},
        lambda arrays: {"item.factors": arrays["item_embeddings"]},
        lambda arrays, options: {
            "confidence": 1.0 + _number(options, "weight"),
            "regularization": _number(options, "regularization"),
        },
        kind="lenskit ImplicitMF",
    ),
    Format(
        "LensKit's EASEScorer",
        "ease",
        {"weights": ("items", "items")},
        lambda arrays: {"weight": arrays["weights"]},
        kind="lenskit EASE",
    ),
)
