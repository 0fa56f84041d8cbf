"""``cfbench explain`` on runs of recommenders: the unit that it chooses, where there is no sentence, and what is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cfbench_core import run
from cfbench_core.cli.root import main
from cfbench_core.run_directory import Run
from cfbench_core.run_files import RunFiles

DATA = {"name": "synthetic", "users": 40, "items": 15, "interactions": 250, "clusters": 3}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def study(explainers: list[Any], out: Path, metrics: list[str] | None = None, **protocol: Any) -> Run:
    document = {
        "suite": "recsys",
        "data": DATA,
        "recommenders": ["item-knn"],
        "explainers": explainers,
        "protocol": {"k": [3], "users": 10, **protocol},
        "executor": "inline",
    }
    return run(document if metrics is None else {**document, "metrics": metrics}, out=out)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Items and lists, as they are by default."""
    return study(["greedy"], tmp_path_factory.mktemp("runs") / "run")


def explained(directory: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["explain", str(directory), *options])
    return code, " ".join(capsys.readouterr().out.split())


def test_of_items_and_lists_an_item_is_chosen(done: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert {"item", "list"} == set(done.scores["level"])
    code, output = explained(done.directory, capsys)
    assert code == 0 and "was recommended to user" in output and "No valid counterfactual" not in output


def test_of_a_list_it_says_that_only_items_have_sentences(
    done: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With and without a metric that could be put into words elsewhere."""
    lists = study(["greedy"], tmp_path / "lists", level=["list"])
    success = lists.scores[lists.scores["metric"] == "PN-S@3"]
    assert success["value"].max() > 0
    code, output = explained(lists.directory, capsys)
    assert code == 1 and "No valid counterfactual" not in output and "level: [item]" in output
    user = str(success["unit"].iloc[0])
    code, output = explained(done.directory, capsys, "--unit", user)
    assert code == 0 and f"to user {user} " in output, "the items of that user"


def test_without_the_metric_it_says_which_one_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = study(["greedy"], tmp_path / "bare", metrics=["pn-s"], level=["item"])
    assert bare.scores["value"].max() == 1
    code, output = explained(bare.directory, capsys)
    assert code == 1 and "rank-after" in output and "No valid counterfactual" not in output


def test_where_no_edit_helps_it_says_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Popularity scores all profiles alike, so the order of the candidates stays as it is."""
    document = {
        "suite": "recsys",
        "data": DATA,
        "recommenders": ["popularity"],
        "explainers": ["random"],
        "protocol": {"k": [3], "users": 5, "level": ["item"], "postprocess": {"verify": False}},
        "executor": "inline",
    }
    stuck = run(document, out=tmp_path / "stuck")
    code, output = explained(stuck.directory, capsys)
    assert code == 1 and output == "No valid counterfactual: no explanation changes the model's output."


def test_tables_are_read_as_often_for_many_cells_as_for_few(
    done: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = study(
        ["leave-one-out", "greedy", "random", "jaccard", "cosine", "popularity", "lime-rs", "beam"],
        tmp_path / "many",
    )
    verified = RunFiles.verified
    opened: Counter[str] = Counter()

    def counting(self: RunFiles, name: str) -> Path:
        opened[name] += 1
        return verified(self, name)

    monkeypatch.setattr(RunFiles, "verified", counting)
    reads = []
    for one in (done, many):
        opened.clear()
        assert explained(one.directory, capsys)[0] == 0
        reads.append(dict(opened))
    assert reads[0] == reads[1]
