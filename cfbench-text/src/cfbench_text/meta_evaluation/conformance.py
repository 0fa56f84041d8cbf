"""What a label set must do, for the conformance kit."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.testing import NotApplicable, Subject, require
from cfbench_text.meta_evaluation.labelled import LabelledTexts


def has_rated_texts(subject: Subject) -> None:
    """Has each text evidence and a finite rating, and are some right and others not?"""
    found = _loaded(subject)
    n = len(found)
    arrays: tuple[Any, ...] = (found.evidence, found.labels, found.good, found.documents)
    require(all(len(one) == n for one in arrays), "texts, evidence, ratings and documents differ in number")
    require(bool(np.isfinite(found.labels).all()), "a rating is not finite")
    require(bool(found.good.any() and not found.good.all()), "all texts are right, or none is")
    lowest = found.labels[found.good].min()
    require(
        bool(lowest > found.labels[~found.good].max()), "a text that is right is rated below one that is not"
    )


def reads_the_same_ratings_again(subject: Subject) -> None:
    """Does reading it twice give the same texts and ratings?"""
    first, second = _loaded(subject), _loaded(subject)
    same = list(first.texts) == list(second.texts) and np.array_equal(first.labels, second.labels)
    require(same, "the second reading differs")


def _loaded(subject: Subject) -> LabelledTexts:
    try:
        labelset = subject.create()
        found: LabelledTexts = labelset.load(labelset.find(DataAccess(offline=True)))
    except TypeError as error:
        raise NotApplicable(f"it cannot be made without options ({error})") from None
    except UserError as error:
        raise NotApplicable(f"its data are not available: {error}") from None
    return found
