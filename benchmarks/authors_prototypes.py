"""The class ``CounterfactualProto`` of alibi on a case, for ``authors_tabular_gradients.py``.

It runs two updates in one call of a TensorFlow session, without an order: c_{t+1} replaces c_t, and y_{t+1} = c_{t+1} +
t / (t + 3) (c_{t+1} - c_t) is computed. Where the first comes first, c_t is lost and y_{t+1} = c_{t+1}: a descent without
momentum. Which comes first is the choice of TensorFlow, which changes it in the middle of a run (here usually after some
hundred steps). :class:`Ordered` gives the class a session in which both are computed before either is stored, or in which
the replacement always comes first.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")

import numpy as np
from authors_tabular_rows import Answers, Case, timed
from library_methods import Layout, check_agreement

from cfbench_tabular.explainers.levels import Line, Space
from cfbench_tabular.table import FloatArray

OPTIONS = {"theta": 10.0, "c_init": 1.0, "c_steps": 10}
BETA, RATE = 0.1, 0.01
"""The options of our preset."""
FIRST, LAST = -1.0, 1.0
"""Where the levels of categories are on their lines: as wide as in the authors' example for one-hot columns."""


class Ordered:
    """A session that computes both updates before it stores either (``momentum``), or stores c_{t+1} first."""

    def __init__(self, session: Any, search: Any, momentum: bool) -> None:
        self.session, self.search, self.momentum = session, search, momentum

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        search = self.search
        if not isinstance(fetches, list) or fetches[0] is not search.adv_updater:
            return self.session.run(fetches, feed_dict=feed_dict)
        point, ahead = self.session.run([search.assign_adv, search.assign_adv_s])
        self.session.run(search.adv_updater, feed_dict={search.assign_adv: point})
        stored = {search.assign_adv_s: ahead} if self.momentum else {search.assign_adv: point}
        self.session.run(search.adv_updater_s, feed_dict=stored)
        return None


class Double:
    """TensorFlow with double precision wherever their class asks for single precision."""

    def __init__(self, module: Any) -> None:
        self.module, self.float32 = module, module.float64
        constant = module.ragged.constant
        self.ragged = SimpleNamespace(
            constant=lambda values: constant(values, dtype=module.float64),
            map_flat_values=module.ragged.map_flat_values,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def Variable(self, value: Any, **options: Any) -> Any:  # noqa: N802
        return self.module.Variable(value, **{"dtype": self.float32, **options})

    def constant(self, value: Any, **options: Any) -> Any:
        kind = {"dtype": self.float32} if isinstance(value, float) else {}
        return self.module.constant(value, **kind, **options)

    def maximum(self, value: Any, other: Any) -> Any:
        return self.module.maximum(self.module.cast(value, self.float32), other)

    def one_hot(self, **options: Any) -> Any:
        return self.module.one_hot(**options, dtype=self.float32)


class Prototypes:
    """Their class, fitted to the training rows of a case."""

    def __init__(self, given: Case, iterations: int, precision: str = "float32") -> None:
        import tensorflow as tf

        tf.compat.v1.disable_v2_behavior()
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        logging.getLogger("alibi").setLevel(logging.ERROR)
        from alibi.explainers import cfproto
        from alibi.utils import tf as graph_functions

        tf.compat.v1.keras.backend.clear_session()
        tf.keras.backend.set_floatx(precision)
        module = tf.compat.v1 if precision == "float32" else Double(tf.compat.v1)
        cfproto.tf = graph_functions.tf = module
        self.given, encoding = given, given.context.encoding
        self.precision = precision
        self.layout = layout = Layout.of(encoding, scaled=False)
        w1, b1, w2, b2 = layout.weights(given.model, precision)
        hidden = tf.keras.layers.Dense(len(b1), "relu", input_shape=(len(w1),))
        network = tf.keras.Sequential([hidden, tf.keras.layers.Dense(2, "softmax")])
        network.set_weights([w1, b1, w2, b2])
        some = given.context.background[:100]
        check_agreement(network.predict(layout.to_library(some, precision)), given.model, some)
        number = np.array([column.scalar for column in encoding.columns])
        low, high = np.where(number, encoding.low, FIRST), np.where(number, encoding.high, LAST)
        groups = {start: size for start, size in zip(layout.starts, layout.sizes, strict=True) if size > 1}
        number_of = float if precision == "float32" else np.float64  # a Python number is single to TensorFlow
        self.search = cfproto.CounterfactualProto(
            network,
            (1, len(w1)),
            use_kdtree=True,
            max_iterations=iterations,
            feature_range=(low.astype(precision)[None], high.astype(precision)[None]),
            beta=number_of(BETA),
            learning_rate_init=number_of(RATE),
            **OPTIONS,
            **({"cat_vars": groups, "ohe": True} if groups else {}),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.search.fit(layout.to_library(given.context.background, precision))
        self.session = self.search.sess

    def answers(self, momentum: bool | None) -> Answers:
        """``momentum`` None: in the order that TensorFlow chooses."""
        self.search.sess = self.session if momentum is None else Ordered(self.session, self.search, momentum)
        rows = self.layout.to_library(self.given.factuals.vectors, self.precision)

        def run() -> FloatArray:
            found = np.full_like(rows, np.nan)
            for place in range(len(rows)):
                result = self.search.explain(rows[place : place + 1])
                if result.cf is not None:
                    found[place] = result.cf["X"][0]
            return self.layout.from_library(found)

        return timed(run, len(rows))

    @contextmanager
    def levels(self) -> Iterator[None]:
        """Our explainer has the levels where theirs are, within the same limits."""
        lines, theirs = [], iter(self.search.d_abs.values() if self.layout.encoding.groups else ())
        encoding = self.layout.encoding
        for column, block in zip(encoding.columns, encoding.blocks, strict=True):
            if column.scalar:
                lines.append(Line(np.empty(0), np.array([block.start]), np.empty(0)))
                continue
            places = np.asarray(next(theirs), dtype=np.float64)
            order = np.argsort(places, kind="stable")
            several = block.stop - block.start > 1
            positions = block.start + order if several else np.full(len(places), block.start)
            values = np.ones(len(places)) if several else order.astype(np.float64)
            lines.append(Line(places[order], positions, values))
        space = WithLimits(lines, encoding.width)
        with patch.object(Space, "of_columns", lambda *arguments: space):
            yield


class WithLimits(Space):
    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = super().limits(low, high)
        for end, limit in zip(ends, (FIRST, LAST), strict=True):
            end[:, self.categories] = limit
        return ends
