"""CFExpRec's own code, with the recommender, data and configurations that it publishes, next to the printed numbers.

    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --explainers lime-rs shap lxr
    python benchmarks/authors_cfexprec.py CHECKOUT_OF_L2R-UET_CFExpRec --explainers accent --users 100

Amazon Fashion and MF, as in table 3: is the Gini index of cfbench that of the paper? The authors' explainers explain the
users that their code draws; POS-P, NEG-P and the Gini index are those of their functions, and the Gini index of cfbench is
computed from the same importances. The repository is not part of this project: its path is an argument. Its package is
imported module by module: its ``__init__`` imports explainers of graphs, too. KernelExplainer of the package shap, which
enumerates all coalitions of ten clusters, is replaced by their Shapley values from the definition, which it converges to;
this evaluates each of the 1,024 profiles once instead of once for each of the 50 background users.

Rows in docs/results/authors-cfexprec.csv.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import types
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from results import keep

from cfbench_explainers_native.shapley_values import enumeration
from cfbench_recsys.analysis.published_cfexprec import printed_numbers
from cfbench_recsys.metrics.gini import gini

CLASSES = {
    "lime-rs": ("lime_rs", "LIME_RS", "limers"),
    "shap": ("shap", "SHAP", "shap"),
    "accent": ("accent", "ACCENT", "accent"),
    "lxr": ("lxr", "LXR", "lxr"),
}
"""Module, class and configuration of each explainer in the authors' repository."""


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="folder of the authors' repository; LXR is stored in it")
    parser.add_argument(
        "--explainers", nargs="+", choices=sorted(CLASSES), default=["lime-rs", "shap", "lxr"]
    )
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("docs/results/authors-cfexprec"))
    options = parser.parse_args()
    output = options.output.resolve()
    here = Path.cwd()
    os.chdir(options.checkout)  # the authors' code reads its files from the working directory
    sys.path.insert(0, "src")
    rows = [
        row(name, level, options.k, options.users)
        for name in options.explainers
        for level in ("item", "list")
    ]
    os.chdir(here)
    for one in rows:
        print(one)
    command = "python benchmarks/authors_cfexprec.py CHECKOUT; ACCENT: --explainers accent --users 100"
    keep(output, rows, ["explainer", "level", "k"], command)


def row(name: str, level: str, k: int, users: int) -> dict[str, Any]:
    """Means over the units of these users, and the printed numbers."""
    torch.manual_seed(0)
    np.random.seed(0)  # the authors' code draws from the global state
    metrics = importlib.import_module("metrics.exp_metrics")
    model, explained = recommender(level, k, name)
    explainer = explainer_of(name, model)
    found = []
    for user in explained[:users]:
        answer, _ = explainer.explain(user, mode="implicit", level=level, graph_perturb="khop")
        listed = explainer.y_pred_indices[user].tolist()
        history = explainer.ui_mat[user].numpy() > 0
        for place, importances in enumerate(answer if level == "item" else [answer]):
            which = place if level == "item" else None
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
    means = {
        label: round(float(value), 4)
        for label, value in zip(
            ("POS-P", "NEG-P", "Gini", "Gini of cfbench"), table.mean(axis=0), strict=True
        )
    }
    apart = float(f"{np.abs(table[:, 2] - table[:, 3]).max():.1e}")
    printed = {
        f"{label} printed": printed_mean(name, level, k, label) for label in ("POS-P", "NEG-P", "Gini")
    }
    named = {"explainer": name, "level": level, "k": k, "users": min(users, len(explained))}
    return {**named, **means, "largest difference": apart, **printed}


def recommender(level: str, k: int, name: str) -> tuple[Any, list[int]]:
    """The authors' MF with their weights, and the users whom their code explains."""
    handler = importlib.import_module("data_preprocessing").DataHandler
    arguments = Namespace(
        dataset="Amazon",
        batch_train=1,
        batch_test=1,
        test_users=None,
        top_k=k,
        level=level,
        rec_model="MF",
        exp_model=name,
    )
    data = handler(arguments, mode="exp")
    config = configuration("config/rec_model/Amazon/mf_config.json")
    model = importlib.import_module("rec_model.mf").MF(
        data, torch.device("cpu"), arguments, config=config, explain=True
    )
    model.load_state_dict(torch.load("checkpoints/MF_Amazon.pth", weights_only=True, map_location="cpu"))
    return model.eval(), list(data.test_dataset.data)


def explainer_of(name: str, model: Any) -> Any:
    module, class_name, file = CLASSES[name]
    package = types.ModuleType("exp_model")
    package.__path__ = ["src/exp_model"]
    sys.modules["exp_model"] = package
    exact = types.ModuleType("shap")
    exact.KernelExplainer = ExactKernelExplainer  # type: ignore[attr-defined]
    sys.modules["shap"] = exact
    config = configuration(f"config/exp_model/Amazon/MF/{file}_config.json")
    made = getattr(importlib.import_module(f"exp_model.{module}"), class_name)
    return made(model, torch.device("cpu"), model.args, config=config)


def configuration(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    return loaded


def printed_mean(name: str, level: str, k: int, metric: str) -> float:
    table = printed_numbers()
    label = metric if metric == "Gini" else f"{metric}@{k}"
    chosen = table[
        (table["item"] == "table-3")
        & (table["dataset"] == "amazon-fashion")
        & (table["explainer"] == name)
        & (table["level"] == level)
        & (table["k"] == str(k))
        & (table["metric"] == label)
    ]
    return float(chosen["printed"].item())


if __name__ == "__main__":
    main()
