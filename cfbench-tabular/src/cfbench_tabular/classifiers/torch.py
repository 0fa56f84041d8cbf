"""Any torch module of encoded rows, with weights from a file or trained here; gradients by autograd.

``factory`` names a class or function that returns the module; a parameter called ``inputs`` receives the number of
encoded columns. Its output for rows (n, d) is (n, 2), of class 0 and class 1, or (n, 1) or (n,), of class 1: logits, or
with ``outputs: probabilities`` probabilities. Weights are its state dict, as ``.safetensors`` or as ``.pt`` or
``.pth``, which is read with ``weights_only=True``, so that no code in the file is executed.

Without weights it is trained on the training rows by Adam on the cross entropy, until the loss of the validation
rows has not decreased for ``patience`` epochs; the best epoch is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import CodeReference, Help, InputFile, Range
from cfbench_core.config.code_references import named_object
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/classifier/torch",
    summary="Any torch module, with weights from a file or trained here",
    target=f"{__name__}:Torch",
    config=f"{__name__}:Config",
    provides={"access": {"gradients", "scores"}},
)


DEFAULT = f"{__name__}:two_hidden_layers"
LIBRARIES = (__name__,)
"""Modules whose factories a configuration may name without a module of the user's own: the default one."""

LACKS = "torch is not installed: pip install 'cfbench-tabular[torch]'"


@dataclass(frozen=True, kw_only=True)
class Config:
    factory: Annotated[
        str, CodeReference(LIBRARIES), Help("package.module:name of the factory of the module")
    ] = DEFAULT
    weights: Annotated[
        str | None, InputFile(), Help("its state dict, .safetensors, .pt or .pth; none: trained here")
    ] = None
    outputs: Annotated[Literal["logits", "probabilities"], Help("what the module returns")] = "logits"
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.01
    batch: Annotated[int, Range(minimum=1), Help("rows per step")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("maximum number of epochs")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without improvement on the validation rows")] = 10


def two_hidden_layers(inputs: int) -> Any:
    """The default module: 16 and 16 neurons with tanh, which is differentiable everywhere."""
    torch = _torch()
    layers = [torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 2)).double()


class Torch:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.module: Any = None
        self.inputs = 0

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator.integers(2**31)))
            self._create(data.encoding.width)
            if self.config.weights is not None:
                self._load(_read(Path(self.config.weights)), self.config.weights)
            else:
                self._train(data, generator, report)
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
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.module.state_dict().items()}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], data: PreparedDataset) -> None:
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            self._create(data.encoding.width)
        tensors = {name: torch.as_tensor(np.array(array)) for name, array in state.items()}
        self._load(tensors, "the state")

    def _create(self, inputs: int) -> None:
        factory: Callable[..., Any] = (
            two_hidden_layers
            if self.config.factory == DEFAULT
            else named_object(self.config.factory, "torch")
        )
        wants = "inputs" in inspect.signature(factory).parameters
        self.module = factory(inputs=inputs) if wants else factory()
        if not isinstance(self.module, _torch().nn.Module):
            raise UserError(
                f"torch: {self.config.factory} returned {type(self.module).__name__}, not a torch module"
            )
        self.module.eval()
        self.inputs = inputs

    def _load(self, tensors: Mapping[str, Any], source: str) -> None:
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
                f"torch: {self.config.factory} returned shape {tuple(found.shape)} for {len(rows)} rows; "
                "must be (rows, 2), (rows, 1) or (rows,)"
            )
        if self.config.outputs == "probabilities":
            tiny = torch.finfo(found.dtype).tiny
            zero, one = (found[:, 0], found[:, 1]) if found.ndim == 2 else (1 - found, found)
            return torch.log(one.clamp_min(tiny)) - torch.log(zero.clamp_min(tiny))
        return found[:, 1] - found[:, 0] if found.ndim == 2 else found

    def _train(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        torch = _torch()
        (rows, labels), (watched, right) = (self._sample(data, part) for part in ("train", "validation"))
        if len(right) == 0:
            watched, right = rows, labels
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.config.learning_rate)
        best, since, selected = np.inf, 0, self._weights()
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
            best, since, selected = (now, 0, self._weights()) if now < best else (best, since + 1, selected)
            report(epoch, self.config.epochs)
            if since >= self.config.patience:
                break
        self.module.load_state_dict(selected)

    def _sample(self, data: PreparedDataset, part: Any) -> tuple[Any, Any]:
        vectors, labels = data.sample(part)
        return tuple(_torch().as_tensor(array, dtype=self._dtype()) for array in (vectors, labels))

    def _weights(self) -> dict[str, Any]:
        return {name: tensor.clone() for name, tensor in self.module.state_dict().items()}


def _read(path: Path) -> Mapping[str, Any]:
    """The tensors of a file.

    Raises:
        UserError: if the file is not a state dict.
    """
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        tensors: Mapping[str, Any] = load_file(path)
        return tensors
    if path.suffix not in (".pt", ".pth"):
        raise UserError(f"{path}: weights must be a .safetensors, .pt or .pth file")
    try:
        found = _torch().load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises various types for a file that is not a state dict
        first_line = (str(error).strip().splitlines() or [""])[0]
        if "Weights only load failed" in first_line:  # and torch advises to execute what is in the file
            first_line = "it holds more than tensors; save the module's weights by torch.save(module.state_dict(), FILE)"
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
