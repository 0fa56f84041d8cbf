"""What comes of a search: a configuration for ``cfbench run``, and a preset for those who share it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.config import resolved_document
from cfbench_core.environment import git_state, hardware
from cfbench_core.files import write_atomically
from cfbench_core.presets import Preset, presets_of
from cfbench_core.tuning.definition import Search
from cfbench_core.tuning.journal import Trial

DIGITS = 6
"""Significant digits of values for people; ``trials.csv`` has all."""


@dataclass(frozen=True)
class Tuned:
    """A search and its trials; ``resumed`` of them were there before the call.

    ``held_out``: the values of the best options and of those as configured on data that judged no trial; None where these
    are the same options, or there are no such data.
    """

    search: Search
    trials: tuple[Trial, ...]
    resumed: int
    held_out: tuple[float, float] | None = None

    @property
    def best(self) -> Trial | None:
        """The best trial, of equals the first; None as long as all have failed."""
        ok = [trial for trial in self.trials if trial.value is not None]
        sign = -1.0 if self.search.tunable.direction == "higher" else 1.0
        return min(ok, key=lambda trial: sign * (trial.value or 0.0), default=None)

    @property
    def failed(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.value is None]

    @property
    def options(self) -> dict[str, Any]:
        """Of the best trial: what was searched, and the other options that the configuration had set. Empty without one."""
        if self.best is None:
            return {}
        document = self.search.reference.document(defaults=False)
        set_before = {} if isinstance(document, str) else dict(document)
        for key in ("name", "import", "label"):
            set_before.pop(key, None)
        return _changed(set_before, self.best.options)

    @property
    def at_the_edge(self) -> list[str]:
        """The options of the best trial that stand at the end of their range."""
        if self.best is None:
            return []
        options = self.best.options
        return [d.name for d in self.search.space if d.at_its_edge(options[d.name])]

    def verbalize(self) -> str:
        """ "validation NDCG@10 0.31 in trial 13 of 20 (0.29 as it was configured)"."""
        best, metric = self.best, self.search.tunable.metric
        if best is None:
            return f"{metric}: all {len(self.trials)} trials failed"
        first = self.trials[0].value
        before = (
            "which failed as it was configured" if first is None else f"{number(first)} as it was configured"
        )
        where = "as it was configured" if best.number == 0 else f"in trial {best.number}"
        compared = "" if best.number == 0 else f" ({before})"
        found = f"{metric} {number(best.value)} {where}, the best of {len(self.trials)}{compared}"
        if self.held_out is None:
            return found
        value, configured = self.held_out
        return f"{found}; on held-out data {number(value)} ({number(configured)} as it was configured)"

    def preset(self, name: str) -> Preset:
        """The best options, with everything that is needed to reproduce the search.

        Raises:
            ValueError: when there is no best trial.
        """
        best, search = self.best, self.search
        if best is None:
            raise ValueError("all trials failed")
        first = self.trials[0].value
        found = {
            "command": search.command,
            "data": search.tunable.data,
            "metric": search.tunable.metric,
            "value": float(number(best.value)),
            "as_configured": None if first is None else float(number(first)),
            "better": search.tunable.direction,
            "held_out": self._held_out(),
            "trials": len(self.trials),
            "failed": len(self.failed),
            "best_trial": best.number,
            "seed": search.prepared.config.seed,
            "space": {dimension.name: str(dimension) for dimension in search.space},
            "seconds": round(sum(trial.elapsed_seconds for trial in self.trials)),
            "version": search.reference.distribution,
            "commit": _commit(search.reference.spec.target),
            "hardware": _machine(),
            "date": _today(),
        }
        return Preset(
            name, self.options, {key: value for key, value in found.items() if value not in ("", None)}
        )

    def _held_out(self) -> dict[str, Any] | None:
        if self.held_out is None:
            return None
        value, configured = (float(number(found)) for found in self.held_out)
        tunable = self.search.tunable
        metric = tunable.held_out_metric or f"{tunable.metric}, held out"
        return {"metric": metric, "value": value, "as_configured": configured}


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.{DIGITS}g}"


def write_configuration(tuned: Tuned) -> None:
    """``search.out``: the configuration with the best options, as soon as there are any; its head says where from."""
    if tuned.best is None:
        return
    search = tuned.search
    document = resolved_document(search.prepared.config, defaults=False)
    entries = document[search.field]
    entry = entries if search.place is None else entries[search.place]
    changed = _changed({"name": entry} if isinstance(entry, str) else entry, tuned.best.options)
    spec = search.reference.spec
    if tuned.best.number and changed.get("label") in {f"{spec.name}-{preset}" for preset in presets_of(spec)}:
        del changed["label"]  # the options are not those of a published preset any more
    if search.place is None:
        document[search.field] = changed
    else:
        entries[search.place] = changed
    head = [
        f"{search.component} tuned on {search.tunable.data}: {tuned.verbalize()}",
        *([f"Found by: {search.command}"] if search.command else []),
        f"cfbench-core {version('cfbench-core')}, {_today()}. All trials: {search.directory.name}/trials.csv",
    ]
    text = "".join(f"# {' '.join(line.splitlines())}\n" for line in head)
    write_atomically(search.out, text + yaml.safe_dump(_plain(document), sort_keys=False, allow_unicode=True))


def _changed(document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A component's mapping with options put in; ``outer.inner`` goes into a mapping inside."""
    changed = dict(document)
    for name, value in options.items():
        *outer, last = name.split(".")
        inner = changed
        for key in outer:
            inner[key] = dict(inner.get(key, {}))
            inner = inner[key]
        inner[last] = value
    plain: dict[str, Any] = _plain(changed)
    return plain


def _plain(value: Any) -> Any:
    """As YAML has it: lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def _commit(target: str) -> str:
    """The commit of the code of a component; empty when it does not come from a repository."""
    found = importlib.util.find_spec(target.partition(":")[0])
    state = git_state(Path(found.origin).parent) if found is not None and found.origin is not None else None
    if state is None:
        return ""
    return str(state["commit"]) + (" with changes" if state["dirty"] else "")


def _machine() -> str:
    """ "Intel Xeon 2.1 GHz, 2 cores, NVIDIA A100"."""
    machine = hardware()
    gpus = [str(gpu["name"]) for gpu in machine["gpus"]]
    return ", ".join([str(machine["processor"]), f"{machine['cores_usable']} cores", *gpus])


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
