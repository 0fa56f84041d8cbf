"""Conversions put users and items into the order of the data, and refuse what they cannot read or complete."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from cfbench_core.errors import UserError
from cfbench_recsys.conversion import convert
from cfbench_recsys.conversion.command import command
from cfbench_recsys.conversion.trained_models import read_identifiers
from cfbench_recsys.interactions import Interactions, from_pairs

DATA = from_pairs("drinks", np.array(["ann", "bob", "cat", "ann"]), np.array(["tea", "rum", "ale", "gin"]))


def lenskit_ease(path: Path, items: list[str], weights: np.ndarray) -> Path:
    np.savez(path, library="lenskit EASE", items=items, weights=weights)
    return path


@settings(deadline=None, max_examples=30)
@given(st.permutations(["tea", "rum", "ale", "gin", "fizz"]))
def test_items_are_found_by_their_identifiers_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, items: list[str]
) -> None:
    """The weight from item i to item j is a number made of their names, whatever their order in the file."""
    folder = tmp_path_factory.mktemp("order")
    code = {name: place for place, name in enumerate(sorted(items))}
    weights = np.array([[10.0 * code[source] + code[target] for target in items] for source in items])
    conversion = convert(lenskit_ease(folder / "ease.npz", items, weights), DATA, folder / "w.safetensors")
    found = load_file(conversion.path)["weight"]
    for source, row in zip(DATA.item_ids, found, strict=True):
        for target, weight in zip(DATA.item_ids, row, strict=True):
            assert weight == 10.0 * code[source] + code[target]
    assert conversion.remarks == ("1 items of the model are not in the data set",)


def test_without_identifiers_the_order_is_that_of_the_data(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "als.npz", user_factors=np.zeros((9, 2)), item_factors=np.arange(8.0).reshape(4, 2),
        alpha=3.0, regularization=0.5,
    )  # fmt: skip
    conversion = convert(tmp_path / "als.npz", DATA, tmp_path / "w.safetensors")
    assert load_file(conversion.path)["item.factors"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert conversion.entry() == (
        f"{{name: als, confidence: 3.0, regularization: 0.5, weights: {tmp_path / 'w.safetensors'}}}"
    )


def refusal(source: Path, data: Interactions = DATA, **options: tuple[str, ...]) -> str:
    with pytest.raises(UserError) as error:
        convert(source, data, source.with_name("out.safetensors"), **options)  # type: ignore[arg-type]
    assert not source.with_name("out.safetensors").exists()
    (line,) = error.value.lines
    return line


def test_missing_items_are_named(tmp_path: Path) -> None:
    message = refusal(lenskit_ease(tmp_path / "e.npz", ["tea", "rum"], np.zeros((2, 2))))
    assert message.endswith("2 of 4 items of the data set are not in the model: ale, gin")


def test_identifiers_must_be_as_many_as_the_arrays_have_and_each_one_once(tmp_path: Path) -> None:
    file = lenskit_ease(tmp_path / "e.npz", ["tea", "rum", "ale", "ale"], np.zeros((4, 4)))
    assert refusal(file).endswith("some identifiers of items are given twice")
    assert refusal(file, items=("tea",)).endswith("weights has 4 items, but 1 identifiers are given")


def test_another_number_of_items_needs_identifiers(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "als.npz", user_factors=np.zeros((1, 2)), item_factors=np.zeros((5, 2)), alpha=1.0,
        regularization=1.0,
    )  # fmt: skip
    assert refusal(tmp_path / "als.npz").endswith(
        "item_factors has 5 items, the data set has 4; give the identifiers in the order of the file "
        "(--items FILE, one per line)"
    )


def test_identifiers_without_an_array_in_their_order_are_refused(tmp_path: Path) -> None:
    """Items given as users would leave the items in the order of the data."""
    file = lenskit_ease(tmp_path / "e.npz", ["tea", "rum", "ale", "gin"], np.zeros((4, 4)))
    message = refusal(file, users=("tea", "rum", "ale", "gin"))
    assert message.endswith(
        "LensKit's EASEScorer has no array with an order of users, so --users has no effect"
    )


def test_weights_have_the_name_by_which_a_run_reads_them(tmp_path: Path) -> None:
    file = lenskit_ease(tmp_path / "e.npz", ["tea", "rum", "ale", "gin"], np.zeros((4, 4)))
    with pytest.raises(UserError, match=r"ease\.npz: weights are written as \.safetensors"):
        convert(file, DATA, tmp_path / "ease.npz")
    assert not (tmp_path / "ease.npz").exists()


def test_identifiers_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("tea\nrum\n", encoding="utf-8-sig")
    assert read_identifiers(tmp_path / "items.txt") == ("tea", "rum")


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    weights = np.zeros((4, 4))
    weights[1, 2] = np.nan
    message = refusal(lenskit_ease(tmp_path / "e.npz", DATA.item_ids.tolist(), weights))
    assert message.endswith("weight has values that are not finite")


def test_an_unknown_model_is_described(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", tower=np.zeros((2, 3)))
    message = refusal(tmp_path / "other.npz")
    assert "no known model; it holds arrays: tower (2, 3). Known: the two-tower MF of LXR" in message


def implicit_als(path: Path, **changes: object) -> Path:
    arrays = {
        "user_factors": np.zeros((9, 2)),
        "item_factors": np.zeros((4, 2)),
        "alpha": 3.0,
        "regularization": 0.5,
    }
    np.savez(path, **{**arrays, **changes})  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_factors": np.ones((4, 2), np.longdouble)}, "item_factors must be numbers of at most 64 bits"),
        ({"item_factors": np.full((4, 2), "one")}, "item_factors must be real numbers, has the type <U3"),
        (
            {"item_factors": np.zeros((4, 2), complex)},
            "item_factors must be real numbers, has the type complex128",
        ),
        ({"item_factors": np.full((4, 2), None)}, "holds objects of Python, which cannot be read"),
        ({"items": np.array(4)}, "items must be a list of identifiers, words or whole numbers"),
        ({"items": np.zeros((4, 2), int)}, "items must be a list of identifiers, words or whole numbers"),
        ({"items": np.zeros(4)}, "items must be a list of identifiers, words or whole numbers"),
        ({"alpha": -1.0}, "as als: confidence: must be a number >= 1, got '-1.0'"),
        ({"alpha": np.nan}, "as als: confidence: must be a number >= 1, got"),
        ({"regularization": -0.5}, "as als: regularization: must be a number >= 0, got '-0.5'"),
        ({"regularization": "much"}, "the option 'regularization' must be a number, is 'much'"),
        ({"alpha": True}, "the option 'alpha' must be a number, is True"),
        ({"alpha": np.ones(1)}, "it has further arrays, alpha"),
        ({"item_factors": np.zeros((4, 0))}, "item_factors is empty, it has the shape (4, 0)"),
        ({"item_biases": np.zeros(4)}, "it has further arrays, item_biases, and its scores"),
    ],
)
def test_arrays_and_options_that_no_recommender_takes_are_one_clear_line(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    line = refusal(implicit_als(tmp_path / "als.npz", **changes))
    assert message in line and "allow_pickle" not in line


@pytest.mark.parametrize("further", [{}, {"alpha": 1.0}])
def test_another_model_of_implicit_is_not_taken_for_als(tmp_path: Path, further: dict[str, float]) -> None:
    np.savez(
        tmp_path / "bpr.npz", user_factors=np.ones((3, 2)), item_factors=np.ones((4, 2)), learning_rate=0.01,
        regularization=0.01, users=DATA.user_ids, items=DATA.item_ids, **further,
    )  # fmt: skip
    message = refusal(tmp_path / "bpr.npz")
    assert "is not implicit's AlternatingLeastSquares: it has the option 'learning_rate'" in message
    assert "Known: the two-tower MF of LXR" in message


def test_als_without_regularization(tmp_path: Path) -> None:
    source = implicit_als(tmp_path / "als.npz", regularization=0.0, item_factors=np.eye(4, 2))
    assert convert(source, DATA, tmp_path / "w.safetensors").options["regularization"] == 0


def test_arrays_that_do_not_fit_one_another_are_reported_with_the_file(tmp_path: Path) -> None:
    source = recbole_lightgcn(tmp_path / "gcn.pt", 2, **{"item_embedding.weight": torch.ones(5, 3)})
    message = refusal(source)
    assert message == f"{source}: lightgcn: weights: item_embedding.weight must be (4, 2), is (4, 3)"


def recbole_lightgcn(path: Path, layers: object, **further: torch.Tensor) -> Path:
    state = {"user_embedding.weight": torch.ones(4, 2), "item_embedding.weight": torch.ones(5, 2), **further}
    about = {"library": "recbole", "model": "LightGCN", "options": {"n_layers": layers}}
    torch.save(
        {**about, "state_dict": state, "users": DATA.user_ids.tolist(), "items": DATA.item_ids.tolist()}, path
    )
    return path


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (2.7, "the option 'n_layers' must be a whole number from 0 to 100, is 2.7"),
        (10**6, "the option 'n_layers' must be a whole number from 0 to 100, is 1e+06"),
        (True, "the option 'n_layers' must be a number, is True"),
        ("two", "the option 'n_layers' must be a number, is 'two'"),
        (None, "the option 'n_layers' must be a number, is None"),
    ],
)
def test_a_number_of_layers_that_is_none_is_not_rounded(tmp_path: Path, layers: object, message: str) -> None:
    assert refusal(recbole_lightgcn(tmp_path / "m.pt", layers)).endswith(message)
    assert convert(recbole_lightgcn(tmp_path / "m.pt", 2), DATA, tmp_path / "w.safetensors").options == {
        "layers": 2
    }


def test_a_model_with_further_layers_is_not_read_as_the_one_without_them(tmp_path: Path) -> None:
    """With an autoencoder of two hidden layers as wide as there are items, all shapes fit the first and third layer."""
    message = refusal(recbole_lightgcn(tmp_path / "m.pt", 2, **{"gcn.weight": torch.eye(2)}))
    assert "is not RecBole's LightGCN: it has further arrays, gcn.weight" in message
    wide = {f"{side}.{n}.weight": torch.eye(4) for side in ("encoder", "decoder") for n in (0, 2, 4)}
    biases = {name.replace("weight", "bias"): torch.zeros(4) for name in wide}
    torch.save(
        {**wide, **biases, "encoder.2.weight": torch.ones(8, 4), "encoder.2.bias": torch.zeros(8)},
        tmp_path / "v.pt",
    )
    assert "encoder.4.weight" in refusal(tmp_path / "v.pt")


@pytest.mark.parametrize("intact", [10, 100, 300, 400])
def test_damaged_files_of_numpy_are_refused_without_advice_to_execute_them(
    tmp_path: Path, intact: int
) -> None:
    whole = implicit_als(tmp_path / "als.npz").read_bytes()
    for content in (whole[:intact], whole[:intact] + bytes(40) + whole[intact + 40 :]):
        (tmp_path / "als.npz").write_bytes(content)
        line = refusal(tmp_path / "als.npz")
        assert line.startswith(f"{tmp_path / 'als.npz'}: ") and "pickle" not in line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": 4}, "items must be a list of identifiers"),
        ({"users": "abc"}, "users must be a list of identifiers"),
        ({"items": [["tea"]]}, "items must be a list of identifiers"),
        ({"state_dict": {"item_embeddings": torch.zeros(4, 2).to_sparse()}}, "is no dense tensor of numbers"),
        ({"state_dict": {"item_embeddings": torch.zeros(4, 2, dtype=torch.cfloat)}}, "must be real numbers"),
    ],
)
def test_a_file_of_torch_with_anything_else_in_place_of_a_list_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    holds = {
        "library": "lenskit", "model": "ImplicitMF", "options": {"weight": 1.0, "regularization": 1.0},
        "state_dict": {"item_embeddings": torch.zeros(4, 2)},
    }  # fmt: skip
    torch.save({**holds, **changes}, tmp_path / "mf.pt")
    assert message in refusal(tmp_path / "mf.pt")


def test_identifiers_may_be_a_tensor_and_weights_of_16_bits(tmp_path: Path) -> None:
    data = from_pairs("numbered", np.array(["1", "2", "3", "1"]), np.array(["10", "11", "12", "13"]))
    embeddings = torch.arange(8.0).reshape(4, 2)
    holds = {
        "library": "lenskit", "model": "ImplicitMF", "options": {"weight": 1.0, "regularization": 1.0},
        "items": torch.tensor([13, 12, 11, 10]), "state_dict": {"item_embeddings": embeddings.bfloat16()},
    }  # fmt: skip
    torch.save(holds, tmp_path / "mf.pt")
    convert(tmp_path / "mf.pt", data, tmp_path / "w.safetensors")
    assert np.array_equal(load_file(tmp_path / "w.safetensors")["item.factors"], embeddings.numpy()[::-1])


class Program:
    """What a file of somebody else's may hold: something that runs a program when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("name", ["evil.pt", "evil.npz"])
def test_nothing_in_a_file_is_executed(tmp_path: Path, name: str) -> None:
    mark, file = tmp_path / "was-here", tmp_path / name
    if name.endswith(".pt"):
        torch.save({"state_dict": Program(mark)}, file)
    else:
        np.savez(file, weights=np.array([Program(mark)], dtype=object))
    message = refusal(file)
    assert "without executing what it holds" in message or "cannot be read as arrays" in message
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("gone.pt", "no such file"), ("model.h5", "it must be .safetensors, .npz, .pt or .pth")],
)
def test_a_file_that_is_not_there_or_of_another_form(tmp_path: Path, name: str, message: str) -> None:
    if name.endswith(".h5"):
        (tmp_path / name).write_bytes(b"\x89HDF")
    assert message in refusal(tmp_path / name)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.sampled_from([".pt", ".npz", ".safetensors"]))
def test_any_bytes_give_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str
) -> None:
    file = tmp_path_factory.mktemp("bytes") / f"model{suffix}"
    file.write_bytes(content)
    assert refusal(file)


def test_a_misspelled_name_gives_the_nearest_published_model(tmp_path: Path) -> None:
    arguments = ["lxr-mf-ml1m", "--data", "debian-python", "--output", str(tmp_path / "w.safetensors")]
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, UserError)
    assert "no such file, and no published model of this name. Did you mean 'lxr-mf-ml-1m'?" in str(
        done.exception
    )


@pytest.mark.parametrize("end", ["", "\n"], ids=["without", "with"])
def test_the_last_identifier_counts_with_and_without_a_newline_after_it(tmp_path: Path, end: str) -> None:
    (tmp_path / "items.txt").write_text(f"tea\nrum{end}")
    assert read_identifiers(tmp_path / "items.txt") == ("tea", "rum")
