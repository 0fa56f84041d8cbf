"""Any torch module of encoded rows: with weights from a file, or trained here; gradients by autograd.

``factory`` names a class or function that returns the module; one that takes ``inputs`` is given the number of encoded
columns. Its output for rows (n, d) is (n, 2), of class 0 and class 1, or (n, 1) or (n,), of class 1: logits, or with
``outputs: probabilities`` probabilities. Weights are its state dict, as ``.safetensors`` or as ``.pt`` or ``.pth``,
which is read with ``weights_only=True``: nothing in a file is executed.

Without weights it is trained on the training rows by Adam on the cross entropy, until the loss of the validation
rows has not fallen for ``patience`` epochs; the best epoch is kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.adapting import named_object
from cfbench_tabular.classifiers.base import Report
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray

LACKS = "torch is not installed: pip install 'cfbench-tabular[torch]'"
INPUTS = "_inputs"
"""The name under which the number of encoded columns is kept beside the weights."""


@dataclass(frozen=True, kw_only=True)
class Config:
    factory: Annotated[str, Help("package.module:name of what makes the module")] = (
        "cfbench_tabular.classifiers.torch:two_hidden_layers"
    )
    weights: Annotated[
        str | None, InputFile(), Help("its state dict, .safetensors, .pt or .pth; none: trained here")
    ] = None
    outputs: Annotated[Literal["logits", "probabilities"], Help("what the module returns")] = "logits"
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.01
    batch: Annotated[int, Range(minimum=1), Help("rows per step")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without progress on the validation rows")] = 10


def two_hidden_layers(inputs: int) -> Any:
    """The module where none is named: 16 and 16 neurons, tanh, so that it has no kinks."""
    torch = _torch()
    layers = [torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 2)).double()


class Torch:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.module: Any = None
        self.inputs = 0

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator.integers(2**31)))
            self._make(problem.encoding.width)
            if self.config.weights is not None:
                self._take_up(_read(Path(self.config.weights)), self.config.weights)
            else:
                self._train(problem, generator, report)
        self._log_odds(torch.zeros((1, self.inputs), dtype=self._dtype()))

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        torch = _torch()
        with torch.no_grad():
            log_odds = self._log_odds(torch.as_tensor(np.asarray(vectors), dtype=self._dtype())).double()
            both = torch.stack([torch.sigmoid(-log_odds), torch.sigmoid(log_odds)], dim=1)
        found: FloatArray = both.numpy()
        return found

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        torch = _torch()
        rows = torch.tensor(np.asarray(vectors), dtype=self._dtype(), requires_grad=True)
        (slope,) = torch.autograd.grad(self._log_odds(rows).sum(), rows)
        found: FloatArray = slope.double().numpy()
        return found

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in self.module.state_dict().items()}
        return {**arrays, INPUTS: np.array([self.inputs])}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            self._make(int(state[INPUTS][0]))
        tensors = {name: torch.as_tensor(np.array(array)) for name, array in state.items() if name != INPUTS}
        self._take_up(tensors, "the state")

    def _make(self, inputs: int) -> None:
        factory = named_object(self.config.factory, "torch")
        wants = "inputs" in inspect.signature(factory).parameters
        self.module = factory(inputs=inputs) if wants else factory()
        if not isinstance(self.module, _torch().nn.Module):
            raise UserError(
                f"torch: {self.config.factory} made {type(self.module).__name__}, not a torch module"
            )
        self.module.eval()
        self.inputs = inputs

    def _take_up(self, tensors: Mapping[str, Any], source: str) -> None:
        try:
            self.module.load_state_dict(dict(tensors))
        except (RuntimeError, TypeError) as error:
            lines = " ".join(str(error).split())
            raise UserError(f"{source}: does not fit {self.config.factory}: {lines}") from None

    def _dtype(self) -> Any:
        torch = _torch()
        kinds = [tensor.dtype for tensor in self.module.parameters() if tensor.is_floating_point()]
        return kinds[0] if kinds else torch.float64

    def _log_odds(self, rows: Any) -> Any:
        """(n,) log(p1 / p0), as a tensor."""
        torch = _torch()
        found = self.module(rows)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.shape not in ((len(rows),), (len(rows), 2)):
            raise UserError(
                f"torch: {self.config.factory} gave shape {tuple(found.shape)} for {len(rows)} rows; "
                "must be (rows, 2), (rows, 1) or (rows,)"
            )
        if self.config.outputs == "probabilities":
            tiny = torch.finfo(found.dtype).tiny
            zero, one = (found[:, 0], found[:, 1]) if found.ndim == 2 else (1 - found, found)
            return torch.log(one.clamp_min(tiny)) - torch.log(zero.clamp_min(tiny))
        return found[:, 1] - found[:, 0] if found.ndim == 2 else found

    def _train(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        torch = _torch()
        (rows, labels), (watched, right) = (self._sample(problem, part) for part in ("train", "validation"))
        if len(right) == 0:
            watched, right = rows, labels
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.config.learning_rate)
        best, since, kept = np.inf, 0, self._copy()
        for epoch in range(1, self.config.epochs + 1):
            self.module.train()
            for places in np.array_split(
                generator.permutation(len(labels)), -(-len(labels) // self.config.batch)
            ):
                optimizer.zero_grad()
                loss(self._log_odds(rows[places]), labels[places]).backward()
                optimizer.step()
            self.module.eval()
            with torch.no_grad():
                now = float(loss(self._log_odds(watched), right))
            best, since, kept = (now, 0, self._copy()) if now < best else (best, since + 1, kept)
            report(epoch, self.config.epochs)
            if since >= self.config.patience:
                break
        self.module.load_state_dict(kept)

    def _sample(self, problem: Problem, part: Any) -> tuple[Any, Any]:
        vectors, labels = problem.sample(part)
        return tuple(_torch().as_tensor(array, dtype=self._dtype()) for array in (vectors, labels))

    def _copy(self) -> dict[str, Any]:
        return {name: tensor.clone() for name, tensor in self.module.state_dict().items()}


def _read(path: Path) -> Mapping[str, Any]:
    """
    Raises:
        UserError: when the file is no state dict.
    """
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        tensors: Mapping[str, Any] = load_file(path)
        return tensors
    if path.suffix not in (".pt", ".pth"):
        raise UserError(f"{path}: weights must be a .safetensors, .pt or .pth file")
    try:
        found = _torch().load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of torch's reader: whatever it raises, this is no file of tensors
        first_line = (str(error).strip().splitlines() or [""])[0]
        raise UserError(f"{path}: is not a state dict that can be read safely: {first_line}") from None
    if not isinstance(found, Mapping):
        raise UserError(f"{path}: holds {type(found).__name__}; it must hold a state dict")
    return found


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UserError(LACKS) from error
    return torch
