"""Training a classifier again and again, as if its owner did so later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfbench_core.config import create
from cfbench_core.lifecycle.models import save_state
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifiers.adapting import adapted
from cfbench_tabular.classifiers.retrained import bootstrapped, collected_state
from cfbench_tabular.steps.data import load_data

TARGET = f"{__name__}:fit_again"


def fit_again(context: TaskContext) -> Mapping[str, Any]:
    """Trains ``count`` models that differ from the explained one in ``changes``; ``purpose`` names their random streams."""
    data, given, streams = load_data(context), context.parameters, context.streams
    states = []
    for number in range(given["count"]):
        context.report(number, given["count"])
        names = (given["purpose"], number)
        sample = data
        if "bootstrap" in given["changes"]:
            sample = bootstrapped(data, streams.generator("bootstrap", *names))
        drawn = streams.generator("fit", *(names if "seed" in given["changes"] else ()))
        model = adapted(create(given["model"]), data.encoding)
        model.fit(sample, drawn, lambda done, total: None)
        states.append((model.state(), sample.rows("train")))
    save_state(collected_state(states), context.output)
    return {"models": given["count"]}
