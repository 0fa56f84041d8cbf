"""CFExpRec's own code, with the recommender, data and configurations that it publishes, next to the printed numbers.

    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --explainers lime-rs shap lxr
    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --explainers accent --users 100
    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --dataset ml-1m --explainers lxr --users 300 \\
        --k 3 5 --edits
    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --dataset ml-1m --explainers lxr --users 300 \\
        --edits --change alpha_lxr=1 lambda_neg=0.141 lr=0.0042 batch_train=32

MF as in table 3: is the Gini index of cfbench that of the paper, and does the authors' code give the printed numbers? The
authors' explainers explain the users that their code draws; POS-P, NEG-P and the Gini index are those of their functions,
and the Gini index of cfbench is computed from the same importances. ``--edits`` adds table 4 for LXR: PN-S, PN-R and the
number of edits. ``--change`` replaces settings of the explainer, as those that the authors of LXR published.

The repository is not part of this project: its path is an argument. What is needed of it is copied to a temporary
folder, where LXR is trained anew. It has the interactions of Amazon Fashion, but not those of MovieLens 1M; these are
written there from the file that the data set ``ml-1m`` of cfbench finds, in the order of that file, since the
authors' code splits them at random by their places. The package is imported module by module: its ``__init__``
imports explainers of graphs, too. KernelExplainer of the package shap, which enumerates all coalitions of ten
clusters, is replaced by their Shapley values from the definition, which it converges to; this evaluates each of the
1,024 profiles once instead of once for each of the 50 background users.

Rows in docs/results/authors-cfexprec.csv and authors-cfexprec-edits.csv.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import types
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from results import keep

from cfbench_core.data_files import DataAccess
from cfbench_explainers_native.shapley_values import enumeration
from cfbench_recsys.analysis.published_cfexprec import printed_numbers
from cfbench_recsys.datasets import ml_1m
from cfbench_recsys.datasets.movielens import ABOVE, owners_table
from cfbench_recsys.metrics.gini import gini
from cfbench_recsys.reading import read_table

CLASSES = {
    "lime-rs": ("lime_rs", "LIME_RS", "limers"),
    "shap": ("shap", "SHAP", "shap"),
    "accent": ("accent", "ACCENT", "accent"),
    "lxr": ("lxr", "LXR", "lxr"),
}
"""Module, class and configuration of each explainer in the authors' repository."""

NAMES = {"amazon-fashion": "Amazon", "ml-1m": "ML1M"}
"""What the authors' repository calls each data set."""
TRAINING_ITEMS = {"amazon-fashion": None, "ml-1m": 3_377}
"""Items of the training data that their weights were trained with; None: the data are theirs."""
EDITS = "#Perturb"
"""What table 4 calls the number of edits."""
COMMAND = (
    "python benchmarks/authors_cfexprec.py CHECKOUT; ACCENT: --explainers accent --users 100; MovieLens 1M: --dataset ml-1m "
    "--users 300 --explainers lime-rs shap; "
    "--users 300 --explainers lxr --k 3 5 --edits"
)


@dataclass(frozen=True)
class Case:
    """What is explained, and how."""

    dataset: str
    explainer: str
    level: str
    k: int
    users: int
    changes: Mapping[str, float]

    def described(self) -> dict[str, Any]:
        settings = " ".join(f"{name}={value:g}" for name, value in self.changes.items())
        named = {"dataset": self.dataset, "explainer": self.explainer, "settings": settings or "published"}
        return {**named, "level": self.level, "k": self.k}


class ExactKernelExplainer:
    """What the authors' code calls of ``shap.KernelExplainer``, from the definition of Shapley values."""

    def __init__(self, predict: Callable[[np.ndarray], np.ndarray], background: np.ndarray) -> None:
        self.predict, self.background = predict, background

    def shap_values(self, instances: np.ndarray, **_: Any) -> np.ndarray:
        """(1, features, outputs) as the package returns it."""
        design = enumeration(instances.shape[1])
        rows = np.where(design.coalitions[:, None], instances, self.background)
        distinct, which = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_inverse=True)
        responses = self.predict(distinct)[which.ravel()].reshape(*rows.shape[:2], -1).mean(axis=1)
        return np.stack([design.values(column) for column in responses.T], axis=1)[None]


def main() -> None:
    options = parsed()
    output = options.output.resolve()
    changes = {name: float(value) for name, _, value in (one.partition("=") for one in options.change)}
    cases = [
        Case(options.dataset, name, level, k, options.users, changes)
        for name in options.explainers
        for k in options.k
        for level in options.level
    ]
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        copy_of(options.checkout, Path(scratch), options.dataset)
        os.chdir(scratch)  # the authors' code reads its files from the working directory
        sys.path.insert(0, str(Path(scratch) / "src"))
        rows = [shown(row(case)) for case in cases]
        edits = [shown(row_of_edits(case)) for case in cases if options.edits and case.explainer == "lxr"]
        os.chdir(here)
    same = ["dataset", "explainer", "settings", "level", "k"]
    keep(output, rows, same, COMMAND)
    if edits:
        keep(output.with_name(f"{output.name}-edits"), edits, same, COMMAND)


def parsed() -> Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "checkout", type=Path, help="folder of the authors' repository; nothing is written to it"
    )
    parser.add_argument("--dataset", choices=sorted(NAMES), default="amazon-fashion")
    parser.add_argument(
        "--explainers", nargs="+", choices=sorted(CLASSES), default=["lime-rs", "shap", "lxr"]
    )
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--k", type=int, nargs="+", default=[5])
    parser.add_argument("--level", nargs="+", choices=("item", "list"), default=["item", "list"])
    parser.add_argument("--edits", action="store_true", help="of LXR, as in table 4, too")
    parser.add_argument(
        "--change", nargs="+", default=[], metavar="NAME=NUMBER", help="a setting of the explainers"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/authors-cfexprec"))
    return parser.parse_args()


def shown(row: dict[str, Any]) -> dict[str, Any]:
    print(row, flush=True)
    return row


def copy_of(checkout: Path, folder: Path, dataset: str) -> None:
    """The authors' code, configurations, weights and data; the interactions of MovieLens 1M are added."""
    name = NAMES[dataset]
    for part in ("src", "config"):
        shutil.copytree(checkout / part, folder / part)
    data = folder / "processed_data" / name
    for made in (folder / "checkpoints", data):
        made.mkdir(parents=True)
    shutil.copy(checkout / "checkpoints" / f"MF_{name}.pth", folder / "checkpoints")
    if dataset == "ml-1m":
        movielens().to_csv(data / "interaction.csv", index=False)
    else:
        shutil.copy(checkout / "processed_data" / name / "interaction.csv", data)


def movielens() -> pd.DataFrame:
    """Interactions of MovieLens 1M by the rule of cfbench, in the order of the file."""
    dataset = ml_1m.MovieLens1M(ml_1m.Config())
    source = dataset.find(DataAccess())
    loaded = dataset.load(source)
    if "ratings.dat" in source.paths:
        table = owners_table(source.paths["ratings.dat"], "::").iloc[:, :3].astype(int)
        table = table[table.iloc[:, 2] > ABOVE].iloc[:, :2]
    else:
        table = read_table(source.paths["ml-1m.parquet"]).iloc[:, :2]
    table.columns = ["user_id", "item_id"]
    return table[
        table["user_id"].isin(loaded.user_ids.astype(int))
        & table["item_id"].isin(loaded.item_ids.astype(int))
    ]


def row(case: Case) -> dict[str, Any]:
    """Means over the units of these users, and the printed numbers."""
    metrics, model, explainer, explained = prepared(case)
    found = []
    for user in explained:
        answer, _ = explainer.explain(user, mode="implicit", level=case.level, graph_perturb="khop")
        listed = explainer.y_pred_indices[user].tolist()
        history = explainer.ui_mat[user].numpy() > 0
        for place, importances in enumerate(answer if case.level == "item" else [answer]):
            which = place if case.level == "item" else None
            own = importances.numpy()[history].astype(np.float64)
            ours = gini(own[None], np.zeros((1, len(own)), dtype=np.bool_))[0]
            found.append(
                (
                    metrics.pos_p_one_instance(model, listed, importances, user, which),
                    metrics.neg_p_one_instance(model, listed, importances, user, which),
                    metrics.gini_one_instance(importances),
                    ours,
                )
            )
    table = np.array(found, dtype=np.float64)
    means = means_of(table, ("POS-P", "NEG-P", "Gini", "Gini of cfbench"))
    apart = float(f"{np.abs(table[:, 2] - table[:, 3]).max():.1e}")
    printed = {
        "POS-P printed": printed_mean(case, "table-3", f"POS-P@{case.k}"),
        "NEG-P printed": printed_mean(case, "table-3", f"NEG-P@{case.k}"),
        "Gini printed": printed_mean(case, "table-3", "Gini"),
    }
    named = {**case.described(), "users": len(explained)}
    return {**named, **means, "largest difference": apart, **printed}


def row_of_edits(case: Case) -> dict[str, Any]:
    """As :func:`row`, of what LXR removes: the interactions with an importance above a half."""
    metrics, model, explainer, explained = prepared(case)
    found = [each for user in explained for each in edits_of(case, metrics, model, explainer, user)]
    means = means_of(np.array(found, dtype=np.float64), ("PN-S", "PN-R", "edits"))
    printed = {
        "PN-S printed": printed_mean(case, "table-4", f"PN-S@{case.k}"),
        "PN-R printed": printed_mean(case, "table-4", f"PN-R@{case.k}"),
        "edits printed": printed_mean(case, "table-4", EDITS),
    }
    return {**case.described(), "users": len(explained), **means, **printed}


def edits_of(
    case: Case, metrics: Any, model: Any, explainer: Any, user: int
) -> Iterator[tuple[float, float, float]]:
    """PN-S, PN-R (NaN for an item) and the number of edits: of each item, or of what the items' edits are together."""
    listed = explainer.y_pred_indices[user].tolist()
    masks = [explainer.get_explicit_explanation(user, item) for item in listed]
    together = [torch.stack(masks).amax(dim=0)]
    for place, mask in enumerate(masks if case.level == "item" else together):
        _, after = model.predict(user, case.k, 1 - mask)
        after = after.tolist()
        if case.level == "item":
            yield metrics.pn_s_item_one_instance(listed, after, place, case.k), np.nan, mask.sum().item()
        else:
            displaced = metrics.pn_s_list_one_instance(listed, after, case.k)
            yield displaced, metrics.pn_r_one_instance(listed, after, case.k), mask.sum().item()


def means_of(table: np.ndarray, labels: tuple[str, ...]) -> dict[str, float]:
    return {label: round(float(value), 4) for label, value in zip(labels, table.mean(axis=0), strict=True)}


def prepared(case: Case) -> tuple[Any, Any, Any, list[int]]:
    """The authors' metrics, MF with their weights, the explainer, and the users whom their code explains."""
    torch.manual_seed(0)
    np.random.seed(0)  # the authors' code draws from the global state
    metrics = importlib.import_module("metrics.exp_metrics")
    model, explained = recommender(case)
    return metrics, model, explainer_of(case, model), explained[: case.users]


def recommender(case: Case) -> tuple[Any, list[int]]:
    handler = importlib.import_module("data_preprocessing").DataHandler
    name = NAMES[case.dataset]
    arguments = Namespace(
        dataset=name,
        batch_train=1,
        batch_test=1,
        test_users=None,
        top_k=case.k,
        level=case.level,
        rec_model="MF",
        exp_model=case.explainer,
    )
    data = handler(arguments, mode="exp")
    if TRAINING_ITEMS[case.dataset] not in (None, data.n_items):
        raise SystemExit(
            f"{case.dataset}: the split has {data.n_items} items, the authors' model another number"
        )
    config = configuration(f"config/rec_model/{name}/mf_config.json")
    model = importlib.import_module("rec_model.mf").MF(
        data, torch.device("cpu"), arguments, config=config, explain=True
    )
    weights = torch.load(f"checkpoints/MF_{name}.pth", weights_only=True, map_location="cpu")
    model.load_state_dict(weights)
    return model.eval(), list(data.test_dataset.data)


def explainer_of(case: Case, model: Any) -> Any:
    module, class_name, file = CLASSES[case.explainer]
    package = types.ModuleType("exp_model")
    package.__path__ = ["src/exp_model"]
    sys.modules["exp_model"] = package
    exact = types.ModuleType("shap")
    exact.KernelExplainer = ExactKernelExplainer  # type: ignore[attr-defined]
    sys.modules["shap"] = exact
    config = configuration(f"config/exp_model/{NAMES[case.dataset]}/MF/{file}_config.json")
    for name, value in case.changes.items():
        if name not in config:
            raise SystemExit(
                f"--change {name}: {case.explainer} has no such setting, but {', '.join(config)}"
            )
        config[name] = int(value) if isinstance(config[name], int) and value.is_integer() else value
    made = getattr(importlib.import_module(f"exp_model.{module}"), class_name)
    return made(model, torch.device("cpu"), model.args, config=config)


def configuration(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    return loaded


def printed_mean(case: Case, item: str, metric: str) -> float:
    """NaN where the paper prints none."""
    table = printed_numbers()
    chosen = table[
        (table["item"] == item)
        & (table["dataset"] == case.dataset)
        & (table["explainer"] == case.explainer)
        & (table["level"] == case.level)
        & (table["k"] == str(case.k))
        & (table["metric"] == metric)
    ]
    return float(chosen["printed"].item()) if len(chosen) else np.nan


if __name__ == "__main__":
    main()
