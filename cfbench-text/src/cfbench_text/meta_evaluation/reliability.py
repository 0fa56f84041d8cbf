"""How reliable a judge was found to be: what tables and sentences that rest on it say.

``reliability.csv`` in this package was measured by ``cfbench meta-evaluate`` at the commit in its last column. Your
own measurements (``cfbench meta-evaluate mine.jsonl --judge ... --store``) are in the cache folder and count first:
labelled texts of your own domain are the nearest. Among the shipped label sets ``NEAREST`` is the order.

A judge is looked up by its component and the options that determine its verdicts. Its reliability is the AUC of
StEnt-P, or of St2Exp-P for a judge of whole documents (:func:`reliability_metric`). It is marked if the lower end of
the interval is below ``LEVEL``, or if it was never measured.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError
from cfbench_core.files import cache_root, disk_trouble, write_atomically
from cfbench_core.hashing import file_digest
from cfbench_core.locks import alone

LEVEL = 0.8
"""Of the AUC; discrimination from here on is called excellent (Hosmer & Lemeshow 2000, section 5.2.4)."""

NEAREST = {
    "topical-chat": "uses_knowledge",
    "sick": "entailment",
    "summeval": "consistency",
    "qags-cnn": "fact",
}
"""Public label sets and their ratings, nearest to explanations first. In 6,000 explanations of XRec 74% of the words are
not in the reference, and a text has 29 to 51 words; of the label sets Topical-Chat is nearest (72%, 22 words), before
SICK (44%, 9 words). Summaries of news take nearly all of their words from long articles (2% are new)."""

COLUMNS = ("labelset", "rating", "judge", "component", "options", "metric", "n", "auc", "auc_low", "auc_high")
FILE = "reliability.csv"
MARK = "†"

OFFLINE = frozenset(("text/judge/overlap", "text/judge/similarity", "text/judge/trained"))

EXECUTION = frozenset(
    {
        *("batch", "device", "download", "dtype", "endpoint", "extra_body", "key", "requests", "timeout"),
        *("retries", "input_price", "output_price"),
    }
)
"""Options that do not determine verdicts, but for rounding and for what ``model`` already names."""


@dataclass(frozen=True)
class Reliability:
    """What is known of a judge.

    Attributes:
        judge: its label. labelset: the nearest on which it was measured; "" if none. n: its texts.
        auc, low, high: with the ends of the 95% interval.
        others: (smallest, largest) AUC on the other label sets; None without any.
        offline: whether it needs no large model, so that there are judges to prefer.
    """

    judge: str
    labelset: str = ""
    own: bool = False
    n: int = 0
    auc: float = math.nan
    low: float = math.nan
    high: float = math.nan
    others: tuple[float, float] | None = None
    offline: bool = False

    @property
    def doubtful(self) -> bool:
        """Whether the judge is not shown to be reliable."""
        return not self.low >= LEVEL

    @property
    def sentence(self) -> str:
        """For the notes of a table."""
        if not self.labelset:
            return (
                f"the reliability of judge {self.judge} was not measured; measure it with"
                " 'cfbench meta-evaluate FILE --judge ... --store'"
            )
        place = (
            f"your labelled texts {self.labelset}" if self.own else f"{self.labelset}, the nearest label set"
        )
        found = f"judge {self.judge} has AUC {self.auc:.2f} [{self.low:.2f}, {self.high:.2f}] against people on {place}"
        if self.others:
            low, high = (f"{value:.2f}" for value in self.others)
            found += f" (on others {low if low == high else f'{low} to {high}'})"
        advice = "; prefer an NLI model (judge nli or minicheck)" if self.offline else ""
        return found + (f": not shown to be at least {LEVEL}{advice}" if self.doubtful else "")


def verdict_options(judge: ConfiguredComponent) -> str:
    """The options that determine the verdicts of a judge, as JSON: its model, and what differs from the defaults.

    A file of weights (``path``) counts by its content.
    """
    document = judge.document(defaults=False)
    options = dict(document) if isinstance(document, Mapping) else {}
    model = getattr(judge.options, "model", None)
    named = {"model": model} if model is not None else {}
    if isinstance(path := options.get("path"), str) and Path(path).is_file():
        named["path"] = f"sha256 {file_digest(Path(path))[:16]}"
    left_out = EXECUTION | {"name", "import", "label"}
    return json.dumps({**{k: v for k, v in options.items() if k not in left_out}, **named}, sort_keys=True)


def reliability_metric(judge: ConfiguredComponent) -> str:
    """The metric by which a judge is evaluated."""
    return "StEnt-P" if "entailment" in judge.spec.provides.get("verdict", ()) else "St2Exp-P"


def measurements_of(judge: ConfiguredComponent) -> list[dict[str, str]]:
    """What was measured of a judge with these options, rows of :data:`COLUMNS` and commit: the nearest label set first."""
    key = (judge.spec.id, verdict_options(judge), reliability_metric(judge))
    measured = [row for row in (*_shipped(), *_rows(own_file())) if _key(row) == key]
    public = {row["labelset"]: row for row in measured if NEAREST.get(row["labelset"]) == row["rating"]}
    own = [row for row in measured if row["labelset"] not in NEAREST]
    return [*own[::-1], *(public[name] for name in NEAREST if name in public)]


def reliability_of(judge: ConfiguredComponent) -> Reliability:
    """What is known of a judge with these options."""
    ordered = measurements_of(judge)
    if not ordered:
        return Reliability(judge.label)
    first, *rest = ordered
    others = [float(row["auc"]) for row in rest]
    return Reliability(
        judge.label,
        first["labelset"],
        first["labelset"] not in NEAREST,
        int(first["n"]),
        float(first["auc"]),
        float(first["auc_low"]),
        float(first["auc_high"]),
        (min(others), max(others)) if others else None,
        judge.spec.id in OFFLINE,
    )


def _key(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["component"], row["options"], row["metric"]


def own_file() -> Path:
    """Where the user's own measurements are."""
    return cache_root() / FILE


def store_measurements(rows: Sequence[Mapping[str, str]], path: Path | None = None) -> Path:
    """Adds measurements (:data:`COLUMNS`, and commit) to a file, by default the user's own; the same ones are replaced.

    Raises:
        UserError: when the file is damaged, or cannot be written.
    """
    path = own_file() if path is None else path
    names = [*COLUMNS, "commit"]

    def same(row: Mapping[str, str]) -> tuple[str, ...]:
        return (row["labelset"], row["rating"], *_key(row))

    with disk_trouble(own_file().parent), alone(own_file().with_suffix(".lock")):
        known = {same(row): {name: str(row[name]) for name in names} for row in [*_rows(path), *rows]}
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())
        write_atomically(path, out.getvalue())
    return path


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return _checked(str(path), csv.DictReader(file))
    except FileNotFoundError:
        return []


@functools.cache
def _shipped() -> tuple[dict[str, str], ...]:
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return tuple(_checked(FILE, csv.DictReader(io.StringIO(text))))


def _checked(name: str, reader: csv.DictReader[str]) -> list[dict[str, str]]:
    try:
        rows = [dict(row) for row in reader]
        if missing := [one for one in (*COLUMNS, "commit") if one not in (reader.fieldnames or ())]:
            raise ValueError(f"has no column {missing[0]}")
        for row in rows:
            int(row["n"])
            [float(row[one]) for one in ("auc", "auc_low", "auc_high")]
    except (ValueError, TypeError, csv.Error) as error:
        raise UserError(f"{name}: is damaged ({error}); delete it, and measure again") from None
    return rows
