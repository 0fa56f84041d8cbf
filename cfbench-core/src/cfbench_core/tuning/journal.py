"""The trials of a search on disk: ``tuned.trials/`` next to ``tuned.yaml``.

    trials.json    what is searched, and every trial: read when the same command is called again
    trials.csv     the same trials as a table, for people
    logs/          what trials printed, and the whole story of those that failed

Both files are written anew after each trial, whole or not at all, so a search that is killed loses the trial that
was running and no other.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core import owners
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.hashing import canonical_json
from cfbench_core.locks import FolderLock
from cfbench_core.tuning.space import Dimension

FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        number: from 0, which is the component as it was configured.
        options: those that are searched, by name.
        status: "ok", or how it failed, as in :class:`cfbench_core.outcomes.Outcome`.
        value: None where it failed.
        reason: why it failed.
        elapsed_seconds: what its stages took, when they were computed.
    """

    number: int
    options: Mapping[str, Any]
    status: str
    value: float | None
    reason: str = ""
    elapsed_seconds: float = 0.0


class Journal:
    """The writing side of one search; held by one process at a time.

    Args:
        identity: what is searched, as JSON; a directory with trials of something else is not touched. Its keys
            are shown to the user, the last one only if nothing else differs.
        restart: forget the trials that are there.

    Raises:
        UserError: when the directory holds another search, or something else, or cannot be written to.
    """

    def __init__(
        self, directory: Path, identity: Mapping[str, Any], space: Sequence[Dimension], restart: bool
    ) -> None:
        self.directory = directory
        self.path = directory / "trials.json"
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self.space = space
        self._lock = FolderLock(directory)
        owners.remove_abandoned(directory)
        try:
            if restart:  # at once: they must not be there again if this search ends before its first trial
                self.path.unlink(missing_ok=True)
            self.trials = self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> list[Trial]:
        if not self.path.exists():
            return []
        advice = "give another --output, or --restart to discard its trials"
        try:
            document = json.loads(self.path.read_bytes())
            earlier, trials = document["search"], [Trial(**entry) for entry in document["trials"]]
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.path}: is not the record of a search; {advice}") from None
        differing = [name for name in self.identity if earlier.get(name) != self.identity[name]]
        if differing:
            named = ", ".join(differing[:-1] or differing)
            raise UserError(f"{self.directory}: holds another search (different: {named}); {advice}")
        return [dataclasses.replace(trial, options=self._restored(trial.options)) for trial in trials]

    def _restored(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {dimension.name: dimension.restored(options[dimension.name]) for dimension in self.space}

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        document = {
            "format": FORMAT,
            "search": self.identity,
            "trials": [dataclasses.asdict(trial) for trial in self.trials],
        }
        write_atomically(
            self.path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )
        write_atomically(self.directory / "trials.csv", self._table())

    def _table(self) -> str:
        names = [dimension.name for dimension in self.space]
        table = io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(["trial", "status", "value", *names, "elapsed_seconds", "reason"])
        for trial in self.trials:
            value = "" if trial.value is None else repr(trial.value)
            options = [_cell(trial.options[name]) for name in names]
            rows.writerow(
                [trial.number, trial.status, value, *options, f"{trial.elapsed_seconds:.3f}", trial.reason]
            )
        return table.getvalue()

    def close(self) -> None:
        self._lock.release()


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
