"""DiCE of cfbench compared with the library of its authors (``dice-ml``, MIT), on the networks of CF-tabular.

    pip install dice-ml torch
    python benchmarks/dice_against_dice_ml.py --factuals 10
    python benchmarks/dice_against_dice_ml.py --sets statlog-german-credit --counterfactuals 4

Both get the same factuals of each class, the same network, the same weights (proximity .5, diversity 1, categories .1)
and the same resetting of numbers (linear); cfbench with the preset ``as-published`` and with its defaults. The network
predicts the decoded rows to decide their validity. Proximity is the mean over columns of |change| / MAD for numbers and
of [changed] for categories; sparsity is the share of unchanged raw columns. Needs the files of CF-tabular
(``CFBENCH_DATA_DIR``). One thread; seconds per counterfactual of the call alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time
import warnings

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.mlp import MLP, from_weights, read_weights
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.counterfactual_sets import inverse_deviations
from cfbench_tabular.explainers.dice import SPEC, Config, DiCE
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.study import NAMES, StudyFiles, find_study
from cfbench_tabular.table import FloatArray

METHODS: dict[str, Config | None] = {
    "dice-ml": None,
    "ours, as published": Config(**presets_of(SPEC)["as-published"].options),
    "ours": Config(),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["statlog-german-credit", "adult"])
    parser.add_argument("--factuals", type=int, default=10, help="of each class")
    parser.add_argument("--counterfactuals", type=int, default=1, help="of each factual")
    arguments = parser.parse_args()
    for name in arguments.sets:
        rows = pd.DataFrame(compared(name, arguments.factuals, arguments.counterfactuals))
        print(rows.to_string(index=False, float_format=lambda number: f"{number:.3f}"), flush=True)


def compared(
    name: str, factuals: int, count: int, methods: Sequence[str] = tuple(METHODS)
) -> list[dict[str, Any]]:
    """A row for each method: validity, proximity, sparsity, seconds."""
    files = StudyFiles(find_study(DataAccess(offline=True), None), NAMES[name])
    prepared = files.prepared_dataset(our_table(name, files))
    model = from_weights(read_weights(files.network))
    chosen, _, _ = files.factual_rows(prepared, factuals)
    vectors = prepared.vectors[chosen]
    explained = Factuals(vectors, predicted_classes(model, vectors), tuple(map(str, chosen)))
    found = []
    for method in methods:
        config = METHODS[method]
        started = time.perf_counter()
        if config is None:
            found_rows = by_the_library(prepared, model, explained, count)
        else:
            background = prepared.sample("train")[0]
            context = Context(
                prepared.encoding,
                background,
                lambda unit: generator("dice", unit),
                counterfactuals_per_instance=count,
            )
            found_rows = Explanation.of(DiCE(config).counterfactuals(model, explained, context)).stacked()
        seconds = (time.perf_counter() - started) / (len(explained) * count)
        scores = measures(prepared, model, explained, found_rows)
        found.append({"dataset": name, "method": method, **scores, "seconds": seconds})
    return found


def our_table(name: str, files: StudyFiles) -> Any:
    """The table of the data set in cfbench, from the file of CF-tabular if it is read from a file."""
    component = installed().find("tabular", "dataset", name).spec
    implementation, config = resolve(component.target), resolve(component.config or "")
    if not hasattr(implementation, "find"):
        return implementation(config()).load()
    made = implementation(config(path=str(files.rows)))
    return made.load(made.find(DataAccess(offline=True)))


def measures(
    prepared: PreparedDataset, model: MLP, explained: Factuals, found: FloatArray
) -> dict[str, float]:
    """The scores of counterfactuals (B, k, d); means over the valid ones."""
    encoding, k = prepared.encoding, found.shape[1]
    rows = found.reshape(-1, encoding.width)
    factuals, classes = np.repeat(explained.vectors, k, axis=0), np.repeat(explained.classes, k)
    valid = ~np.isnan(rows[:, 0])
    valid[valid] = predicted_classes(model, rows[valid]) != classes[valid]
    away = np.abs(rows[valid] - factuals[valid])
    starts = [block.start for block in encoding.blocks]
    largest = np.maximum.reduceat(away, starts, axis=1)
    number = encoding.numeric[starts]
    weights = inverse_deviations(prepared.sample("train")[0], encoding)[starts]
    changed = largest > 5e-5
    return {
        "validity": float(valid.mean()),
        "proximity": float(np.where(number, largest * weights, changed).mean()),
        "sparsity": float(1 - changed.mean()),
        "L2": float(np.linalg.norm(rows[valid] - factuals[valid], axis=1).mean()),
    }


def by_the_library(prepared: PreparedDataset, model: MLP, explained: Factuals, count: int) -> FloatArray:
    """(B, count, d) the counterfactuals of dice-ml by gradient, encoded; NaN where it finds none."""
    import dice_ml

    columns = prepared.encoding.columns
    # No name begins another one, by which dice-ml finds the columns of a category.
    short = [f"c{place:03d}" for place in range(len(columns))]
    known = np.concatenate([prepared.sample("train")[0], explained.vectors])
    frame = _frame(prepared, known, short)
    frame["y"] = np.concatenate([prepared.sample("train")[1], explained.classes])
    numbers = [name for name, column in zip(short, columns, strict=True) if column.kind == "numeric"]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(io.StringIO()):
            data = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name="y")
            wrapped, checked = _as_torch(prepared, model, data, short, frame)
            assert np.abs(checked - model.predict_proba(known[:50])).max() < 1e-4
            backend = dice_ml.Model(model=wrapped, backend="PYT", func="ohe-min-max")
            search = dice_ml.Dice(data, backend, method="gradient")
            found = np.full((len(explained), count, prepared.encoding.width), np.nan)
            for place, query in enumerate(_frame(prepared, explained.vectors, short).to_dict("records")):
                got = search.generate_counterfactuals(
                    pd.DataFrame([query]), total_CFs=count, desired_class="opposite"
                ).cf_examples_list[0]
                rows = got.final_cfs_df_sparse if got.final_cfs_df_sparse is not None else got.final_cfs_df
                for turn, row in enumerate(rows[short].to_dict("records") if rows is not None else []):
                    values = {
                        column.name: np.array([row[name]], dtype=object if column.levels else np.float64)
                        for name, column in zip(short, columns, strict=True)
                    }
                    found[place, turn] = prepared.encoding.encode(values)[0]
    return found


def _frame(prepared: PreparedDataset, vectors: FloatArray, names: Sequence[str]) -> pd.DataFrame:
    decoded = prepared.encoding.decode(vectors)
    return pd.DataFrame(
        {name: decoded[column.name] for name, column in zip(names, prepared.encoding.columns, strict=True)}
    )


def _as_torch(
    prepared: PreparedDataset, model: MLP, data: Any, names: Sequence[str], frame: pd.DataFrame
) -> tuple[Callable[..., Any], FloatArray]:
    """The network on the inputs of dice-ml (numbers from 0 to 1, all levels one-hot), and its predictions for 50 rows."""
    import torch
    from dice_ml.utils.helpers import DataTransfomer

    transformer = DataTransfomer("ohe-min-max")
    transformer.feed_data_params(data)
    transformer.initialize_transform_func()
    inputs = transformer.transform(frame.drop(columns="y").iloc[:50])
    positions = {name: place for place, name in enumerate(inputs.columns)}
    encoding = prepared.encoding
    mixing, shift = np.zeros((len(positions), encoding.width)), np.zeros(encoding.width)
    for place, (name, column, block) in enumerate(zip(names, encoding.columns, encoding.blocks, strict=True)):
        if column.kind == "numeric":
            low, high = frame[name].min(), frame[name].max()
            mixing[positions[name], block.start] = (high - low) / encoding.scale[place]
            shift[block.start] = (low - encoding.mean[place]) / encoding.scale[place]
            continue
        for number, level in enumerate(column.levels):
            if f"{name}_{level}" in positions:
                two = block.stop - block.start == 1
                mixing[positions[f"{name}_{level}"], block.start + (0 if two else number)] = (
                    number if two else 1
                )
    first = torch.nn.Linear(encoding.width, model.weights["b1"].shape[0])
    last = torch.nn.Linear(model.weights["b1"].shape[0], 2)
    for layer, weight, bias in ((first, "W1", "b1"), (last, "W2", "b2")):
        layer.weight.data = torch.tensor(model.weights[weight].T.copy(), dtype=torch.float32)
        layer.bias.data = torch.tensor(model.weights[bias].copy(), dtype=torch.float32)
    matrix, offset = (torch.tensor(array, dtype=torch.float32) for array in (mixing, shift))

    class Wrapped(torch.nn.Module):
        def forward(self, vector: Any) -> Any:
            return torch.softmax(last(torch.relu(first(vector @ matrix + offset))), dim=-1)

    wrapped = Wrapped()
    predicted = wrapped(torch.tensor(inputs.to_numpy(dtype=np.float32))).detach().numpy()
    return wrapped, predicted.astype(np.float64)


if __name__ == "__main__":
    main()
