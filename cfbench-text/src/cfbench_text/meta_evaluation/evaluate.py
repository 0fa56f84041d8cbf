"""Meta-evaluation: how well metrics, judges and extractors agree with people.

    from cfbench_text.meta_evaluation.evaluate import meta_evaluate
    table = meta_evaluate({"labelsets": ["qags-cnn"], "judges": ["overlap"]})

Metrics of the suite score labelled texts against their evidence, as they score explanations against reviews. Their
values are compared with the ratings (``agreement.py``). A judge is evaluated by the metrics that rest on it, an
extractor by the same metrics on its statements. Without an extractor every sentence is a statement, without topic and
sentiment, which judges see as it is written.

Ratings say whether a text is supported by its evidence. Of the metrics of statements, only those of the text's own
statements (precision, hallucination) ask this; recall and omissions are left out. Values for which lower is better are
negated, and columns with one value for all texts are left out. Metrics of one judge that order all texts equally are
one row; ``also`` names the others. The row ``length`` (words of the text) is a control.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.config import ConfiguredComponent, Document, decode_settings
from cfbench_core.config.component import with_defaults
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import Registry, installed
from cfbench_core.specs import lacking
from cfbench_text.contracts import Extractor, Judge, LabelSet, Metric
from cfbench_text.domains import Domain, load_domain
from cfbench_text.entailment_batches import verdicts
from cfbench_text.meta_evaluation.agreement import MEASURES, agreement
from cfbench_text.meta_evaluation.config import MetaEvaluation
from cfbench_text.meta_evaluation.labelled import LabelledTexts, keys_of
from cfbench_text.meta_evaluation.reliability import verdict_options
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import require_local_model
from cfbench_text.reviews import BoolArray, FloatArray
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.statement_extraction import extract_distinct
from cfbench_text.triplets import PlainStatement, Triplet

if TYPE_CHECKING:
    import pandas as pd

SUITE = "text"
LENGTH = "length"
SENTENCES = "sentences"
"""Stands for the extractor where every sentence is a statement."""

NO_DOMAIN = Domain("", ())


def meta_evaluate(
    configuration: Mapping[str, Any] | Document,
    *,
    access: DataAccess | None = None,
    registry: Registry | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Agreement of metrics, judges and extractors with human labels.

    Args:
        configuration: the keys of :class:`~cfbench_text.meta_evaluation.config.MetaEvaluation`.
        access: where label sets are looked for.
        report: is called with a line for each label set before it is scored.

    Returns:
        A row for each label set and metric, with the columns labelset, rating, rule (which texts count as right),
        judge, component and options (of the judge, or of a metric without one; options as JSON, see
        ``verdict_options``), extractor, metric, also (metrics of this judge that order all texts equally), n (texts
        with a value), missing, seen (texts that the judge was trained on), right (share of texts), auc, pairwise,
        kendall, each with ``_low`` and ``_high`` (95%), pairs, within (see ``agreement.py``), words, evidence_words
        (medians), novel (mean share of a text's words that are not in the evidence), and commit (of the code).

    Raises:
        UserError: for a wrong configuration, files that are missing or damaged, and models that are not there.
    """
    import pandas as pd

    registry = registry or installed()
    document = configuration if isinstance(configuration, Document) else Document.of(configuration)
    config: MetaEvaluation = decode_settings(document, MetaEvaluation, SUITE, registry)
    metrics = config.metrics if config.metrics is not None else default_metrics(config, registry)
    used = [*metrics, *config.judges, *([config.extractor] if config.extractor else ())]
    for component in used:
        require_local_model(component)
    _check_served(metrics, config.judges)
    sets = [_read(one, access or DataAccess(), config) for one in config.labelsets]
    domain = load_domain(config.domain) if config.domain is not None else NO_DOMAIN
    extractor: Extractor | None = config.extractor.create() if config.extractor else None
    rows: list[dict[str, Any]] = []
    for texts in sets:
        report(f"{texts.name}: {len(texts):,} texts")
        rows += _rows_of(texts, config, metrics, extractor, domain)
    return pd.DataFrame(rows)


def default_metrics(config: MetaEvaluation, registry: Registry) -> list[ConfiguredComponent]:
    """The metrics that need no model; those of statements only if a judge serves them."""
    found = [
        with_defaults(registry.find(SUITE, "metric", name)) for name in registry.by_default(SUITE, "metric")
    ]
    return [metric for metric in found if "judge" not in metric.spec.needs or _serving(metric, config.judges)]


def _serving(metric: ConfiguredComponent, judges: Sequence[ConfiguredComponent]) -> list[ConfiguredComponent]:
    return [one for one in judges if not lacking(metric.spec.needs["judge"], one.spec.provides)]


def _check_served(metrics: Sequence[ConfiguredComponent], judges: Sequence[ConfiguredComponent]) -> None:
    for metric in metrics:
        if "judge" in metric.spec.needs and not _serving(metric, judges):
            needed = " and ".join(sorted(metric.spec.needs["judge"].get("verdict", ())))
            raise UserError(f"metric {metric.label} needs a judge that gives {needed}; name one in 'judges'")
    if not metrics:
        raise UserError("nothing to evaluate: name a judge, or metrics")


def read_labelset(component: ConfiguredComponent, access: DataAccess) -> LabelledTexts:
    """A label set under its label."""
    labelset: LabelSet = component.create()
    found = labelset.load(labelset.find(access))
    return found if component.label == component.spec.name else replace(found, name=component.label)


def _read(component: ConfiguredComponent, access: DataAccess, config: MetaEvaluation) -> LabelledTexts:
    """A label set under its label, at most ``rows`` of its texts."""
    found = read_labelset(component, access)
    if config.rows is None or len(found) <= config.rows:
        return found
    stream = generator(config.seed, "meta-evaluation rows", found.name)
    place = np.empty(int(found.documents.max()) + 1, dtype=np.int64)
    place[stream.permutation(len(place))] = np.arange(len(place))
    order = np.argsort(place[found.documents], kind="stable")
    return found.rows(np.sort(order[: config.rows]))


@dataclass(frozen=True)
class _Values:
    """Values of a column, higher is better: (N,)."""

    column: str
    judge: ConfiguredComponent | None
    metric: ConfiguredComponent | None
    values: FloatArray


def _rows_of(
    texts: LabelledTexts,
    config: MetaEvaluation,
    metrics: Sequence[ConfiguredComponent],
    extractor: Extractor | None,
    domain: Domain,
) -> Iterator[dict[str, Any]]:
    predicted, lost = _statements(texts.texts, extractor, domain)
    evidence, lost_too = _statements(texts.evidence, extractor, domain)
    seen = ObservedTexts(texts.texts, texts.evidence, predicted, evidence, domain)
    about = {
        "words": float(np.median([len(text.split()) for text in texts.texts])),
        "evidence_words": float(np.median([len(text.split()) for text in texts.evidence])),
        "novel": _novel(texts),
    }
    label = SENTENCES if config.extractor is None else config.extractor.label
    seen_by = {judge.label: _seen(judge, texts) for judge in config.judges}
    for found, also in _distinct(_computed(seen, config.judges, metrics, lost | lost_too)):
        known = np.isfinite(found.values)
        measured = agreement(
            found.values, texts.labels, texts.good, texts.documents, config.resamples, config.seed
        )
        numbers: dict[str, Any] = {}
        for name in MEASURES:
            value, low, high = getattr(measured, name)
            numbers |= {name: value, f"{name}_low": low, f"{name}_high": high}
        yield {
            "labelset": texts.name,
            "rating": texts.rating,
            "rule": texts.rule,
            "judge": found.judge.label if found.judge else "",
            "component": _component_of(found),
            "options": _options_of(found),
            "extractor": label if found.judge else "",
            "metric": found.column,
            "also": ", ".join(also),
            "n": measured.n,
            "missing": int((~known).sum()),
            "seen": seen_by[found.judge.label] if found.judge else 0,
            "right": float(texts.good.mean()),
            **numbers,
            "pairs": measured.pairs,
            "within": "documents" if measured.within else "all texts",
            **about,
            "commit": code_commit(),
        }


def _seen(judge: ConfiguredComponent, texts: LabelledTexts) -> int:
    """How many of the texts a judge was trained on; a warning says so, because its agreement with them is no evidence."""
    made: Any = judge.create()
    if not hasattr(made, "trained_on"):
        return 0
    found = int(made.trained_on(keys_of(texts)))
    if found:
        warnings.warn(
            f"judge {judge.label} was trained on {found:,} of the {len(texts):,} texts of {texts.name}: its agreement"
            " with people there says nothing about other texts, and is not kept",
            ResultWarning,
            stacklevel=2,
        )
    return found


@functools.cache
def code_commit() -> str:
    """The commit of this code, or the version of the distribution where it comes from no repository."""
    from importlib.metadata import version

    from cfbench_core.environment import git_state

    state = git_state(Path(__file__).parent)
    if state is None:
        return f"cfbench-text {version('cfbench-text')}"
    return str(state["commit"])[:9] + (" with changes" if state["dirty"] else "")


def _statements(
    texts: Sequence[str], extractor: Extractor | None, domain: Domain
) -> tuple[list[tuple[Triplet, ...]], BoolArray]:
    """The statements of each text, and whose are unknown because the extraction failed (N,)."""
    if extractor is None:
        known = {text: tuple(map(PlainStatement, sentences(text))) for text in dict.fromkeys(texts)}
        return [known[text] for text in texts], np.zeros(len(texts), dtype=bool)
    found = extract_distinct(extractor, texts, domain, "extractor")
    failed = np.array([one.status == "failed" for one in found])
    if failed.any():
        warnings.warn(f"the statements of {failed.sum()} texts are unknown", ResultWarning, stacklevel=2)
    return [one.triplets for one in found], failed


def _computed(
    seen: ObservedTexts,
    judges: Sequence[ConfiguredComponent],
    metrics: Sequence[ConfiguredComponent],
    lost: BoolArray,
) -> Iterator[_Values]:
    """The values of all metrics; of those of statements once for each judge that serves them."""
    texts = np.array([float(len(text.split())) for text in seen.texts])
    plain = [metric for metric in metrics if "judge" not in metric.spec.needs]
    for metric in plain:
        yield from _columns(metric, None, seen, np.zeros(len(seen), dtype=bool))
    for judge in judges:
        served = [
            metric
            for metric in metrics
            if "judge" in metric.spec.needs and not lacking(metric.spec.needs["judge"], judge.spec.provides)
        ]
        if not served:
            continue
        made: Judge = judge.create()
        made.prepare([one.statement for row in dict.fromkeys(seen.evidence) for one in row])
        needed = {verdict for metric in served for verdict in metric.spec.needs["judge"]["verdict"]}
        judged = verdicts(made, needed, seen.predicted, seen.evidence, seen.texts, seen.references)
        for metric in served:
            yield from _columns(metric, judge, replace(seen, verdicts=judged), lost)
    yield _Values(LENGTH, None, None, texts)


def _columns(
    metric: ConfiguredComponent, judge: ConfiguredComponent | None, seen: ObservedTexts, lost: BoolArray
) -> Iterator[_Values]:
    """The columns of a metric that ask whether the text is supported, where higher is better."""
    made: Metric = metric.create()
    found = made.compute(seen)
    for column in made.columns({}):
        name = column.name
        if judge is not None and (name.endswith(("-R", "-F1")) or name == "omitted"):
            continue
        values = np.where(lost, np.nan, found[name]) * (-1 if column.direction == "lower" else 1)
        known = values[np.isfinite(values)]
        if column.direction and len(known) and np.ptp(known) > 0:
            yield _Values(name, judge, metric, values)


def _distinct(found: Iterator[_Values]) -> list[tuple[_Values, list[str]]]:
    """Each order of the texts under a judge once, with the names of the other columns of this order."""
    kept: dict[tuple[str, bytes], tuple[_Values, list[str]]] = {}
    for one in found:
        _, ranks = np.unique(np.round(one.values, 12), return_inverse=True)
        key = (one.judge.label if one.judge else one.column, ranks.tobytes())
        if key in kept:
            kept[key][1].append(one.column)
        else:
            kept[key] = (one, [])
    return list(kept.values())


def _novel(texts: LabelledTexts) -> float:
    """Mean share of the words of a text, without stop words, that its evidence does not contain."""
    from cfbench_text.judges.overlap import words

    known = {text: set(words(text)) for text in dict.fromkeys(texts.evidence)}
    shares = [
        float(np.mean([word not in known[evidence] for word in own]))
        for text, evidence in zip(texts.texts, texts.evidence, strict=True)
        if (own := words(text))
    ]
    return float(np.mean(shares)) if shares else float("nan")


def _component_of(found: _Values) -> str:
    component = found.judge or found.metric
    return component.spec.id if component else ""


def _options_of(found: _Values) -> str:
    component = found.judge or found.metric
    return verdict_options(component) if component else ""
