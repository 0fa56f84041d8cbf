"""The conformance kit of the suite: what a component must do to be used by it.

Used by ``cfbench check`` and by :mod:`cfbench_core.testing`. The checks use a few of the synthetic reviews, with the
statements from which they were generated.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import Check, NotApplicable, Subject, checks_of, require
from cfbench_text.corpus import Corpus, ExplanationRequests, unit_names
from cfbench_text.datasets.toy_reviews import Config as ToyConfig
from cfbench_text.datasets.toy_reviews import ToyReviews
from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.entailment_batches import verdicts
from cfbench_text.generators.base import Context, Explanation, Training
from cfbench_text.judges.overlap import Overlap
from cfbench_text.meta_evaluation.conformance import has_rated_texts, reads_the_same_ratings_again
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import Reviews
from cfbench_text.splits import divide
from cfbench_text.triplets import SENTIMENTS, Triplet, render

if TYPE_CHECKING:
    from cfbench_text.corpus import Rows

NASTY_TEXTS = (
    "",
    "  ",
    "🎸👍",
    "الصوت جميل",
    "no full stop",
    "word " * 3_000,
    'a "quote", and more',
    "1.5\n\n2",
)


@functools.cache
def example_corpus() -> Corpus:
    """The synthetic reviews of 16 users, divided, with their true statements; always the same."""
    import pandas as pd

    reviews = ToyReviews(ToyConfig(users=16, items=12)).load()
    parts = divide(reviews, "per-user", 0.8, 0.1, 5).parts
    rows = np.flatnonzero(parts >= 0).tolist()
    known = reviews.known or ()
    table = pd.DataFrame(
        {
            "row": rows,
            "unit": unit_names(reviews, rows),
            "user": reviews.users[rows],
            "item": reviews.items[rows],
            "rating": reviews.ratings[rows],
            "time": reviews.times[rows],
            "text": reviews.texts[rows],
            "part": parts[rows],
        }
    )
    lines = [(row, t.statement, t.topic, t.sentiment) for row in rows for t in known[row]]
    statements = pd.DataFrame(lines, columns=["row", "statement", "topic", "sentiment"])
    return Corpus.of(table, statements, load_domain(reviews.domain))


def example_training() -> Training:
    """Training data for a generator, with a fixed random stream."""
    corpus = example_corpus()
    draw = generator("text", "conformance", "fit")
    return Training(corpus.part("train"), corpus.part("validation"), corpus.domain, draw)


def requests_for(rows: Rows, places: Sequence[int] | None = None) -> ExplanationRequests:
    """Rows of a part as a generator sees them."""
    chosen = np.arange(len(rows)) if places is None else np.asarray(places, dtype=np.int64)
    units = tuple(rows.units[place] for place in chosen.tolist())
    return ExplanationRequests(units, rows.users[chosen], rows.items[chosen], rows.times[chosen], chosen)


# Generators


def _fitted(subject: Subject) -> Any:
    if "model" not in subject.memory:
        model = subject.create()
        model.fit(example_training())
        subject.memory["model"] = model
    return subject.memory["model"]


def _written(subject: Subject, model: Any, places: Sequence[int] | None = None) -> list[Explanation]:
    test = example_corpus().part("test")
    sees = "references" in subject.spec.provides.get("sees", frozenset())
    context = Context(lambda unit: generator("text", "units", unit), test.paragraphs if sees else None)
    return list(model.explain(requests_for(test, places), context))


def writes_a_text_for_each_row(subject: Subject) -> None:
    """Is there a text for every row, in order, perhaps empty?"""
    written = _written(subject, _fitted(subject))
    rows = len(example_corpus().part("test"))
    require(len(written) == rows, f"{len(written)} explanations for {rows} rows")
    require(all(isinstance(one.text, str) for one in written), "a text is not a string")
    require(any(one.text for one in written), "every text is empty")


def writes_the_same_again(subject: Subject) -> None:
    """Does a second one, trained with the same random stream, write the same?"""
    again = subject.create()
    again.fit(example_training())
    texts = [one.text for one in _written(subject, _fitted(subject))]
    require(texts == [one.text for one in _written(subject, again)], "the texts differ")


def writes_one_row_as_among_many(subject: Subject) -> None:
    """Does a row get the same text and rating alone as in a batch?"""
    together = _written(subject, _fitted(subject))
    for place in (0, 3, len(together) - 1):
        alone = _written(subject, _fitted(subject), [place])[0]
        require(alone.text == together[place].text, f"row {place} has another text alone")
        same = np.allclose(alone.rating, together[place].rating, rtol=0, atol=1e-5, equal_nan=True)
        require(bool(same), f"row {place} gets another rating alone")


def restores_its_state(subject: Subject) -> None:
    """Does a generator that loads the state of another one write the same texts?"""
    copy = subject.create()
    state = _fitted(subject).state()
    wrong = [name for name, value in state.items() if np.asarray(value).dtype.kind not in "biuf"]
    require(not wrong, f"state() holds {', '.join(wrong)}: only arrays of numbers can be stored")
    copy.load_state({name: np.array(value) for name, value in state.items()}, example_training())
    texts = [one.text for one in _written(subject, _fitted(subject))]
    require(texts == [one.text for one in _written(subject, copy)], "the copy writes other texts")


def survives_nothing_to_explain(subject: Subject) -> None:
    """Is the result empty for no rows?"""
    require(_written(subject, _fitted(subject), []) == [], "there are texts for no rows")


def predicts_ratings_of_all(subject: Subject) -> None:
    """Are predicted ratings one finite number a row?"""
    model = _fitted(subject)
    if not hasattr(model, "predict_ratings"):
        raise NotApplicable("it predicts no ratings")
    test = example_corpus().part("test")
    found = np.asarray(model.predict_ratings(requests_for(test)))
    require(found.shape == (len(test),), f"has shape {found.shape} for {len(test)} rows")
    require(bool(np.isfinite(found).all()), "a rating is not finite")


# Extractors


def statements_are_of_the_domain(subject: Subject) -> None:
    """Are topics and sentiments from the lists, statements not empty, without duplicates?"""
    corpus = example_corpus()
    texts = [*corpus.part("test").reviews, *corpus.part("test").paragraphs]
    for one in subject.create().extract(texts, corpus.domain):
        for triplet in one.triplets:
            require(
                triplet.topic in (*corpus.domain.topics, ""), f"topic {triplet.topic!r} is not in the list"
            )
            require(triplet.sentiment in SENTIMENTS, f"sentiment {triplet.sentiment!r} is not in the list")
            require(bool(triplet.statement.strip()), "a statement is empty")
        require(len(set(one.triplets)) == len(one.triplets), "a statement is there twice")


def survives_any_text(subject: Subject) -> None:
    """Is there a result for empty, long, right-to-left and unusual texts, and no statement for the empty one?"""
    found = subject.create().extract(NASTY_TEXTS, example_corpus().domain)
    require(len(found) == len(NASTY_TEXTS), f"{len(found)} extractions for {len(NASTY_TEXTS)} texts")
    require(not found[0].triplets and found[0].status == "empty", "the empty text has statements, or failed")


def extracts_one_text_as_among_many(subject: Subject) -> None:
    """Does a text have the same statements alone as in a batch, and when extracted again?"""
    corpus = example_corpus()
    texts = [*corpus.part("test").paragraphs[:4], *NASTY_TEXTS[:5]]
    together = list(subject.create().extract(texts, corpus.domain))
    alone = [subject.create().extract([text], corpus.domain)[0] for text in texts]
    require(together == alone, "a text has other statements alone")


def extracts_the_same_again(subject: Subject) -> None:
    """Does it extract the same statements from the same texts a second time, and does another instance?"""
    corpus = example_corpus()
    first, texts = subject.create(), [*corpus.part("test").reviews, *NASTY_TEXTS]
    found = list(first.extract(texts, corpus.domain))
    require(found == list(first.extract(texts, corpus.domain)), "it extracts other statements a second time")
    require(
        found == list(subject.create().extract(texts, corpus.domain)), "another one extracts other statements"
    )


# Judges


def _pairs() -> list[tuple[Triplet, Triplet]]:
    statements = [t for of_row in example_corpus().part("test").triplets for t in of_row][:8]
    return [(one, other) for one in statements for other in statements]


def _judge(subject: Subject, verdict: str) -> Any:
    if verdict not in subject.spec.provides.get("verdict", frozenset()):
        raise NotApplicable(f"it does not give {verdict}")
    judge = subject.create()
    judge.prepare(example_corpus().training_statements)
    return judge


def gives_three_probabilities(subject: Subject) -> None:
    """Are there three probabilities for each pair, with the sum 1?"""
    pairs = _pairs()
    found = np.asarray(_judge(subject, "entailment").entailment(pairs))
    require(found.shape == (len(pairs), 3), f"has shape {found.shape} for {len(pairs)} pairs")
    require(
        bool((found >= -1e-9).all() and np.allclose(found.sum(axis=1), 1, atol=1e-4)), "not probabilities"
    )


def gives_support_between_0_and_1(subject: Subject) -> None:
    """Is the support of each statement by a document between 0 and 1 or undecided, also by an empty document?"""
    test = example_corpus().part("test")
    documents = [Document(render(t), t) for t in [*test.triplets[:3], ()]]
    pairs = [(document, statement) for document in documents for statement in test.triplets[0][:2]]
    found = np.asarray(_judge(subject, "support").support(pairs))
    require(found.shape == (len(pairs),), f"has shape {found.shape} for {len(pairs)} pairs")
    require(bool((np.isnan(found) | ((found >= 0) & (found <= 1))).all()), "a number is not between 0 and 1")


def judges_the_same_again(subject: Subject) -> None:
    """Does it give the same verdicts a second time, and does another instance that is prepared alike?"""
    verdict = "entailment" if "entailment" in subject.spec.provides.get("verdict", ()) else "support"
    first, other = _judge(subject, verdict), _judge(subject, verdict)
    queries: Sequence[Any] = _pairs()
    if verdict == "support":
        queries = [(Document(render((one,)), (one,)), statement) for one, statement in _pairs()]
    found = np.asarray(getattr(first, verdict)(queries))
    again, others = getattr(first, verdict)(queries), getattr(other, verdict)(queries)
    require(np.array_equal(found, again, equal_nan=True), "it gives other verdicts a second time")
    require(np.array_equal(found, others, equal_nan=True), "another one gives other verdicts")


def judges_one_pair_as_among_many(subject: Subject) -> None:
    """Does a pair get the same verdict alone as in a batch?"""
    judge, pairs = _judge(subject, "entailment"), _pairs()
    together = judge.entailment(pairs)
    for place in (0, 5, len(pairs) - 1):
        alone = judge.entailment(pairs[place : place + 1])[0]
        require(
            bool(np.allclose(alone, together[place], atol=1e-5)), f"pair {place} has another verdict alone"
        )


# Metrics


def _observed(subject: Subject, texts: Sequence[tuple[Triplet, ...]]) -> ObservedTexts:
    test = example_corpus().part("test")
    needed = subject.spec.needs.get("judge", {}).get("verdict", frozenset())
    evidence = list(test.triplets)[: len(texts)]
    written, references = [render(t) for t in texts], [render(t) for t in evidence]
    judge = Overlap()
    judge.prepare(example_corpus().training_statements)
    found = verdicts(judge, needed, texts, evidence, written, references)
    return ObservedTexts(written, references, list(texts), evidence, example_corpus().domain, verdicts=found)


def _others() -> list[tuple[Triplet, ...]]:
    """For each test row the statements of the next one; the first has none."""
    evidence = list(example_corpus().part("test").triplets)
    return [(), *evidence[2:], evidence[0]]


def names_its_columns(subject: Subject) -> None:
    """Does it give a number for each text, under exactly the names of its columns?"""
    metric, observed = subject.create(), _observed(subject, _others())
    scores = metric.compute(observed)
    names = [column.name for column in metric.columns({})]
    require(list(scores) == names, f"declares {names} and returns {list(scores)}")
    for name, values in scores.items():
        require(np.shape(values) == (len(observed),), f"{name} has shape {np.shape(values)}")


def stays_in_its_range(subject: Subject) -> None:
    """Are all values within the declared range?"""
    metric = subject.create()
    scores = metric.compute(_observed(subject, _others()))
    for column in metric.columns({}):
        values = np.asarray(scores[column.name], dtype=np.float64)
        require(not np.isinf(values).any(), f"{column.name} is infinite")
        if column.range is not None:
            low, high = column.range
            within = (values >= low) & (values <= high) | np.isnan(values)
            require(bool(within.all()), f"{column.name} leaves {low} to {high}")


def scores_one_text_as_among_many(subject: Subject) -> None:
    """Does a text get the same value alone as among others?"""
    together = subject.create().compute(_observed(subject, _others()))
    alone = subject.create().compute(_observed(subject, _others()[:1]))
    for name, values in alone.items():
        same = np.allclose(values, together[name][:1], atol=1e-6, equal_nan=True)
        require(bool(same), f"{name} differs for a text alone")


def survives_empty_texts(subject: Subject) -> None:
    """When every text is empty, is there a number or NaN for each, and no error?"""
    rows = len(example_corpus().part("test"))
    for name, values in subject.create().compute(_observed(subject, [()] * rows)).items():
        require(np.shape(values) == (rows,), f"{name} has shape {np.shape(values)} for {rows} texts")
        require(not np.isinf(np.asarray(values, dtype=np.float64)).any(), f"{name} is infinite")


def the_reference_is_no_worse_than_another_text(subject: Subject) -> None:
    """Is the reference scored at least as good as the references of other rows, on average?"""
    metric = subject.create()
    own = metric.compute(_observed(subject, list(example_corpus().part("test").triplets)))
    other = metric.compute(_observed(subject, _others()))
    for column in metric.columns({}):
        if column.direction:
            sign = 1 if column.direction == "higher" else -1
            gain = sign * (np.nanmean(own[column.name]) - np.nanmean(other[column.name]))
            require(gain >= -1e-9, f"{column.name} prefers the reference of another row")


# Data sets


def has_reviews(subject: Subject) -> None:
    """Are there reviews with users, items and a domain, so that a split leaves something to explain?"""
    reviews = _loaded(subject)
    load_domain(reviews.domain)
    parts = divide(reviews, "per-user", 0.8, 0.1, 5).parts
    require(bool((parts == 2).any()), "there is no row to explain")


def reads_the_same_again(subject: Subject) -> None:
    """Does reading it twice give the same reviews?"""
    first, second = _loaded(subject), _loaded(subject)
    same = all((getattr(first, n) == getattr(second, n)).all() for n in ("users", "items", "times", "texts"))
    require(same, "the second reading differs")


def _loaded(subject: Subject) -> Reviews:
    dataset = _made(subject)
    if hasattr(dataset, "find"):
        raise NotApplicable("its files must be downloaded")
    reviews: Reviews = dataset.load()
    return reviews


def _made(subject: Subject) -> Any:
    try:
        return subject.create()
    except TypeError as error:
        raise NotApplicable(f"it cannot be made without options ({error})") from None


checks: Mapping[str, tuple[Check, ...]] = {
    "generator": checks_of(
        writes_a_text_for_each_row,
        writes_the_same_again,
        writes_one_row_as_among_many,
        restores_its_state,
        survives_nothing_to_explain,
        predicts_ratings_of_all,
    ),
    "extractor": checks_of(
        statements_are_of_the_domain,
        survives_any_text,
        extracts_one_text_as_among_many,
        extracts_the_same_again,
    ),
    "judge": checks_of(
        gives_three_probabilities,
        gives_support_between_0_and_1,
        judges_one_pair_as_among_many,
        judges_the_same_again,
    ),
    "metric": checks_of(
        names_its_columns,
        stays_in_its_range,
        scores_one_text_as_among_many,
        survives_empty_texts,
        the_reference_is_no_worse_than_another_text,
    ),
    "dataset": checks_of(has_reviews, reads_the_same_again),
    "labelset": checks_of(has_rated_texts, reads_the_same_ratings_again),
}
"""By kind of component."""
