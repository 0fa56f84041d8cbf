"""Trains models of RecBole on a small file, exports them as the how-to shows, and writes the scores that RecBole computes.

Runs in an environment of RecBole's own (``nox -s libraries`` makes one), without cfbench:

    python recbole_models.py EXPORT_SCRIPT FOLDER

The files in ``tests/samples/recbole`` were made by it.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # RecBole reads its own checkpoints as objects

import numpy as np
import torch
from recbole.quick_start import load_data_and_model, run_recbole  # type: ignore[import-not-found]

MODELS = ("LightGCN", "MultiVAE", "EASE", "ItemKNN")
USERS, ITEMS, HISTORY = 30, 20, 7


def write_data(folder: Path) -> None:
    """The same interactions for RecBole and for cfbench."""
    draw = np.random.default_rng(0)
    rows = [
        (user, int(item), time)
        for user in range(USERS)
        for time, item in enumerate(draw.choice(ITEMS, HISTORY, replace=False))
    ]
    (folder / "mine").mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in rows]
    header = "user_id:token\titem_id:token\ttimestamp:float"
    (folder / "mine" / "mine.inter").write_text("\n".join([header, *lines]), encoding="utf-8")
    text = "\n".join(["user,item,time", *(",".join(map(str, row)) for row in rows)])
    (folder / "ratings.csv").write_text(text + "\n", encoding="utf-8")


def train(model: str, folder: Path) -> Path:
    """The checkpoint of a trained model."""
    options = {
        "data_path": str(folder),
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": "user", "mode": "full"},
        "epochs": 3,
        "embedding_size": 4,
        "latent_dimension": 8,
        "mlp_hidden_size": [12],
        "show_progress": False,
        "state": "ERROR",
        "use_gpu": False,
        "checkpoint_dir": str(folder / model),
    }
    if model != "LightGCN":
        options["train_neg_sample_args"] = None
    run_recbole(model=model, dataset="mine", config_dict=options)
    (checkpoint,) = (folder / model).glob("*.pth")
    return checkpoint


def scores(checkpoint: Path) -> dict[str, np.ndarray]:
    """(users, items) scores by RecBole, and the identifiers of users, items and training interactions."""
    _, model, dataset, training, *_ = load_data_and_model(str(checkpoint))
    model.eval()
    with torch.no_grad():
        everybody = {dataset.uid_field: torch.arange(1, dataset.user_num)}
        found = model.full_sort_predict(everybody).reshape(dataset.user_num - 1, -1)
    users, items = (dataset.field2id_token[field] for field in (dataset.uid_field, dataset.iid_field))
    pairs = training.dataset.inter_matrix("coo")
    return {
        "scores": np.asarray(found)[:, 1:],
        "users": users[1:].astype(str),
        "items": items[1:].astype(str),
        "train_users": users[pairs.row].astype(str),
        "train_items": items[pairs.col].astype(str),
    }


if __name__ == "__main__":
    export, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    write_data(folder)
    os.chdir(folder)
    for name in MODELS:
        path = train(name, folder)
        np.savez(folder / f"{name}.npz", **scores(path))
        sys.argv = [str(export), str(path)]
        runpy.run_path(str(export))
        Path("exported.pt").replace(folder / f"{name}.pt")
