"""Counterfactual methods of two public libraries, jax-relax and alibi, on a network with one hidden layer.

Each library gets rows in its own layout (:class:`Layout`) and the same weights; its results are converted back.

- ``jax-relax`` (Apache 2.0): VanillaCF, DiverseCF, GrowingSphere, ProtoCF with their default options. Numbers are
  scaled to 0..1 over the observed range and clipped to it, as in the examples of the library; the methods
  ``...-standardised`` get the standardised numbers that cfbench has, on which the steps are shorter, without clipping.
  Categories are one-hot (two levels as well), normalised by a softmax during the search and by the largest level at the
  end, and immutable columns are declared: ``DataModule`` and ``Feature`` of the library. The call is compiled
  beforehand and timed separately; the library compiles in each call.
- ``alibi`` (Business Source Licence, hence only measured here): ``CounterfactualProto`` on a Keras model, k-d trees,
  with the options of its authors' example (theta 10, 1,000 iterations for each of ten weights), numbers as in cfbench,
  categories one-hot and embedded by ABDM, and the observed range. It does not support immutable columns.

A method is prepared once (``prepare``: auto-encoder, embedding), compiled for a number of rows (``ready``), and then
called; only this call is timed.
"""

from __future__ import annotations

import os

os.environ.update(KERAS_BACKEND="jax", TF_USE_LEGACY_KERAS="1", TQDM_DISABLE="1", TF_CPP_MIN_LOG_LEVEL="3")

import contextlib
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context
from cfbench_tabular.table import FloatArray

STANDARDISED = "-standardised"
"""Suffix of the methods that get the standardised numbers of cfbench."""
RELAX = tuple(
    f"{method}{scale}"
    for method in ("VanillaCF", "DiverseCF", "GrowingSphere", "ProtoCF")
    for scale in ("", STANDARDISED)
)
PROTOTYPES = "CounterfactualProto"
CHUNK = 1_000
"""Rows that jax processes at once: GrowingSphere samples a hundred points for each."""
WARM = 100
"""Maximum number of rows for which a warm-up call precedes the timed one, because it takes as long."""

Call = Callable[[], FloatArray]


def lacking() -> dict[str, str]:
    """The methods that cannot be measured, with the reason."""
    missing = {}
    for library, module, methods in (("jax-relax", "relax", RELAX), ("alibi", "alibi", (PROTOTYPES,))):
        if importlib.util.find_spec(module) is None:
            missing |= dict.fromkeys(methods, f"{library} is not installed")
    if importlib.util.find_spec("tensorflow") is None:
        missing.setdefault(PROTOTYPES, "alibi's prototypes need tensorflow (and tf-keras)")
    return missing


@dataclass(frozen=True)
class Layout:
    """The layout of a library: a position for each number and for each level, also of two; x = z mixing + shift.

    Attributes:
        starts: the first position of each column.
        sizes: the number of positions of each column.
        mixing, shift: (w, d) and (d,).
    """

    encoding: Encoding
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    mixing: FloatArray
    shift: FloatArray

    @staticmethod
    def of(encoding: Encoding, *, scaled: bool) -> Layout:
        """``scaled``: numbers from 0 to 1 over the observed range, else as in cfbench."""
        sizes = tuple(max(1, len(column.levels)) for column in encoding.columns)
        starts = tuple(int(stop) - size for stop, size in zip(np.cumsum(sizes), sizes, strict=True))
        mixing, shift = np.zeros((sum(sizes), encoding.width)), np.zeros(encoding.width)
        for place, (start, size, block) in enumerate(zip(starts, sizes, encoding.blocks, strict=True)):
            if size == 1:
                low, high = (encoding.low[place], encoding.high[place]) if scaled else (0.0, 1.0)
                mixing[start, block.start], shift[block.start] = high - low, low
            elif size == 2:
                mixing[start + 1, block.start] = 1.0
            else:
                mixing[start : start + size, block] = np.eye(size)
        return Layout(encoding, starts, sizes, mixing, shift)

    def to_library(self, vectors: FloatArray, precision: str = "float32") -> FloatArray:
        """(N, w) rows in the layout of the library from encoded rows (N, d)."""
        parts = []
        for start, size, block in zip(self.starts, self.sizes, self.encoding.blocks, strict=True):
            part = vectors[:, block]
            if size == 1:
                part = (part - self.shift[block]) / self.mixing[start, block.start]
            parts.append(np.concatenate([1.0 - part, part], axis=1) if size == 2 else part)
        return np.concatenate(parts, axis=1).astype(precision)

    def from_library(self, rows: FloatArray) -> FloatArray:
        """(N, d) encoded rows from rows in the layout of the library (N, w)."""
        vectors: FloatArray = np.asarray(rows, dtype=np.float64) @ self.mixing + self.shift
        return vectors

    def weights(self, model: MLP, precision: str = "float32") -> tuple[FloatArray, ...]:
        """W1, b1, W2, b2 of the network for rows in the layout of the library."""
        w1, b1, w2, b2 = (model.weights[name] for name in ("W1", "b1", "W2", "b2"))
        folded = (self.mixing @ w1, self.shift @ w1 + b1, w2, b2)
        return tuple(array.astype(precision) for array in folded)


def check_agreement(predicted: FloatArray, model: MLP, vectors: FloatArray) -> None:
    """Stops if a wrapped network differs from that of cfbench."""
    off = float(np.abs(np.asarray(predicted) - model.predict_proba(vectors)).max())
    if off > 1e-4:
        raise SystemExit(f"the wrapped network is off by {off:.1g}: wrong weights or layout")


class Relax:
    """A method of jax-relax."""

    def __init__(self, method: str, model: MLP, context: Context) -> None:
        import jax
        import jax.numpy as jnp
        import relax

        if not hasattr(
            jax, "spmd_mode"
        ):  # Keras below 3.4, which jax-relax requires, expects this attribute of jax
            jax.spmd_mode = contextlib.nullcontext  # on one device it does nothing
        self.scaled = not method.endswith(STANDARDISED)
        method = method.removesuffix(STANDARDISED)
        self.layout = Layout.of(context.encoding, scaled=self.scaled)
        w1, b1, w2, b2 = map(jnp.asarray, self.layout.weights(model))

        def predict(rows: Any) -> Any:
            return jax.nn.softmax(jnp.maximum(rows @ w1 + b1, 0) @ w2 + b2, axis=-1)

        some = context.background[:100]
        check_agreement(predict(self.layout.to_library(some)), model, some)
        self.predict = predict
        options = {"DiverseCF": {"n_cfs": context.counterfactuals_per_instance}}.get(method, {})
        made = getattr(relax.methods, method)(options)
        training = {"train_config": {"verbose": 0}} if method == "ProtoCF" else {}
        self.method = relax.explain.prepare_cf_module(made, self._module(context), predict, **training)

    def _module(self, context: Context) -> Any:
        from relax.data_module import DataModule
        from relax.data_utils import Feature, FeaturesList

        rows, encoding = self.layout.to_library(context.background), context.encoding
        features = []
        for place, (start, size) in enumerate(zip(self.layout.starts, self.layout.sizes, strict=True)):
            part = rows[:, start : start + size]
            number: Any = (
                {"name": "minmax", "transformer": {"min_": 0.0, "max_": 1.0}} if self.scaled else "identity"
            )
            features.append(
                Feature(
                    f"c{place}",
                    part if size == 1 else part.argmax(axis=1)[:, None],
                    number if size == 1 else {"name": "ohe", "transformer": {"categories_": np.arange(size)}},
                    transformed_data=part,
                    is_immutable=encoding.columns[place].immutable,
                )
            )
        labels = Feature("label", np.asarray(context.labels)[:, None], "identity")
        return DataModule(FeaturesList(features), FeaturesList([labels]))

    def ready(self, vectors: FloatArray) -> Call:
        """Compiles for the number of rows."""
        import jax
        from relax.strategy import VmapStrategy

        rows = jax.numpy.asarray(self.layout.to_library(vectors))
        keys, size = jax.random.split(jax.random.PRNGKey(0), len(rows)), min(CHUNK, len(rows))
        if len(rows) % size:
            raise SystemExit(f"{len(rows)} rows are not a multiple of {size}")

        def generate(some: Any, some_keys: Any) -> Any:
            targets = 1 - self.predict(some)
            return VmapStrategy()(self.method.generate_cf, some, self.predict, targets, some_keys)

        compiled = jax.jit(generate).lower(rows[:size], keys[:size]).compile()
        if size <= WARM:
            compiled(rows[:size], keys[:size])

        def call() -> FloatArray:
            parts = [
                np.asarray(compiled(rows[at : at + size], keys[at : at + size]))
                for at in range(0, len(rows), size)
            ]
            found = np.concatenate(parts).reshape(len(rows), -1, rows.shape[1])
            return self.layout.from_library(found[:, 0])

        return call


class Prototypes:
    """alibi's ``CounterfactualProto``."""

    def __init__(self, method: str, model: MLP, context: Context) -> None:
        import tensorflow as tf

        tf.compat.v1.disable_v2_behavior()
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        logging.getLogger("alibi").setLevel(logging.ERROR)
        from alibi.explainers.cfproto import CounterfactualProto

        self.layout = layout = Layout.of(context.encoding, scaled=False)
        w1, b1, w2, b2 = layout.weights(model)
        tf.compat.v1.keras.backend.clear_session()
        hidden = tf.keras.layers.Dense(len(b1), "relu", input_shape=(len(w1),))
        network = tf.keras.Sequential([hidden, tf.keras.layers.Dense(2, "softmax")])
        network.set_weights([w1, b1, w2, b2])
        some = context.background[:100]
        check_agreement(network.predict(layout.to_library(some)), model, some)
        groups = {start: size for start, size in zip(layout.starts, layout.sizes, strict=True) if size > 1}
        ends = tuple(self._columns(bound) for bound in (context.encoding.low, context.encoding.high))
        self.search = CounterfactualProto(
            network,
            (1, len(w1)),
            use_kdtree=True,
            theta=10.0,
            max_iterations=1000,
            c_init=1.0,
            c_steps=10,
            feature_range=ends,
            **({"cat_vars": groups, "ohe": True} if groups else {}),
        )
        self.search.fit(layout.to_library(context.background))

    def _columns(self, bound: FloatArray) -> FloatArray:
        """(1, w or M)"""
        return np.asarray(bound, dtype=np.float32)[None]

    def ready(self, vectors: FloatArray) -> Call:
        rows = self.layout.to_library(vectors)

        def call() -> FloatArray:
            found = np.full_like(rows, np.nan)
            for place in range(len(rows)):
                result = self.search.explain(rows[place : place + 1])
                if result.cf is not None:
                    found[place] = result.cf["X"][0]
            return self.layout.from_library(found)

        return call


METHODS: dict[str, Callable[[str, MLP, Context], Any]] = {
    **dict.fromkeys(RELAX, Relax),
    PROTOTYPES: Prototypes,
}
