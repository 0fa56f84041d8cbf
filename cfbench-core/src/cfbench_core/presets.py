"""Presets: options of a component under a name, with the search that found them.

A component's spec names a YAML resource of its distribution, ``presets="package:folder/file.yaml"``::

    ml-1m:
      options: {dimensions: 128, learning_rate: 0.0031}
      search: {command: cfbench tune ..., metric: validation NDCG@10, value: 0.31, trials: 20}
    paper:
      options: {dimensions: 32}
      search: {source: table 3 of the paper}

A configuration takes them by ``{name: mf, preset: ml-1m}``; options given next to ``preset`` take precedence. A run writes
the options, not the preset's name, into its ``config.yaml``: they stay what they were when the preset changes. What
``search`` holds is for people (``cfbench describe mf``); ``cfbench tune --preset-into`` writes both. ``preset: auto`` takes
the preset of the dataset (of the dataset and the model, ``ml-1m-mf``, for an explainer, or ``paper-ml-1m-mf`` next to
``variant: paper``), see ``config/options_by_setting.py``.

A preset that a search found must be one: ``search_problem`` says what it lacks, and the conformance kit checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.specs import ComponentSpec
from cfbench_core.yaml_nodes import compose, plain

AUTO = "auto"
"""The preset of each combination of data and model; no preset has this name."""

LEAST_TRIALS = 20
"""Of a search whose best options may be a preset."""

LEAST_GAIN = 0.005
"""Of such options on held-out data, as a share of what the options as configured reach."""

_HEAD = "# Options that searches on validation data found (cfbench tune) or that were published, and how each was found.\n"


@dataclass(frozen=True)
class Preset:
    """``options`` as a configuration has them; ``search`` says how they were found."""

    name: str
    options: Mapping[str, Any]
    search: Mapping[str, Any] = field(default_factory=dict)


def search_problem(preset: Preset) -> str:
    """Why a preset must not be shipped; "" if it may.

    Published options have a ``source``. Options of a search come from at least ``LEAST_TRIALS`` trials that did not fail,
    and are better than the options as configured: on the data that judged the trials, and by a share of ``LEAST_GAIN`` on
    data that judged none (``search.held_out``).
    """
    search = preset.search
    if "source" in search:
        return ""
    if not search:
        return "says neither where its options were published ('source') nor how they were found"
    trials = search.get("trials", 0) - search.get("failed", 0)
    if trials < LEAST_TRIALS:
        succeeded = " that did not fail" if search.get("failed", 0) else ""
        return f"comes from {trials} trials{succeeded}, fewer than {LEAST_TRIALS}"
    if not search.get("held_out"):
        return "does not say what it gains on held-out data ('held_out')"
    for found, least in ((search, 0.0), (search["held_out"], LEAST_GAIN)):
        if not {"metric", "value", "as_configured"} <= set(found):
            return "does not say what the options as configured reach ('metric', 'value', 'as_configured')"
        gain = found["value"] - found["as_configured"]
        gain = gain if search.get("better", "higher") == "higher" else -gain
        if gain <= 0:
            return f"is not better than the options as configured by {found['metric']}"
        if gain < least * abs(found["as_configured"]):
            return f"gains less than {least:.1%} over the options as configured by {found['metric']}"
    return ""


def presets_of(spec: ComponentSpec) -> dict[str, Preset]:
    """The presets of a component by name; none when its spec names no file of them.

    Raises:
        UserError: when the file is not there, or is not what it should be.
    """
    if spec.presets is None:
        return {}
    package, colon, path = spec.presets.partition(":")
    try:
        if not colon:
            raise ValueError("must be 'package:folder/file.yaml'")
        text = resources.files(package).joinpath(path).read_text(encoding="utf-8")
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise UserError(f"{spec.id}: its presets {spec.presets!r} cannot be read: {error}") from None
    return parse_presets(text, spec.presets)


def parse_presets(text: str, source: str) -> dict[str, Preset]:
    """The presets in a YAML text. ``source`` is what errors begin with.

    Raises:
        UserError: when the text is not a mapping of names to ``options`` and ``search``.
    """
    root = compose(text, lambda line: f"{source}:{line}")
    document = None if root is None else plain(root)
    if not isinstance(document, dict | None):
        raise UserError(f"{source}: must be a mapping of names to presets")
    found = {}
    for name, entry in (document or {}).items():
        parts = {"options": None, "search": {}, **entry} if isinstance(entry, dict) else {}
        known = set(parts) == {"options", "search"} and all(isinstance(part, dict) for part in parts.values())
        if not known:
            raise UserError(f"{source}: {name}: must be a mapping with 'options' and, if wanted, 'search'")
        if name == AUTO:
            raise UserError(
                f"{source}: {name}: 'preset: auto' means the preset of the data; choose another name"
            )
        found[str(name)] = Preset(str(name), **parts)
    return found


def write_preset(path: Path, preset: Preset) -> None:
    """Puts a preset into a file of presets, in place of one of its name; the others stay.

    Raises:
        UserError: when the file is there and holds something else, or cannot be written.
    """
    try:
        others = parse_presets(path.read_text(encoding="utf-8"), str(path)) if path.exists() else {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    presets = {**others, preset.name: preset}
    document = {
        name: {"options": dict(presets[name].options), "search": dict(presets[name].search)}
        for name in sorted(presets)
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    write_atomically(path, _HEAD + text)
