"""How well a generator predicts ratings."""

from __future__ import annotations

import numpy as np

from cfbench_text.contracts import Generator
from cfbench_text.corpus import Corpus, ExplanationRequests


def rating_quality(model: Generator, corpus: Corpus) -> dict[str, float]:
    """RMSE and MAE of the predicted ratings of the test rows; empty if the generator predicts none."""
    if not hasattr(model, "predict_ratings"):
        return {}
    test = corpus.part("test")
    requests = ExplanationRequests(test.units, test.users, test.items, test.times, np.arange(len(test)))
    known = ~np.isnan(test.ratings)
    errors = (np.asarray(model.predict_ratings(requests), dtype=np.float64) - test.ratings)[known]
    if not len(errors):
        return {}
    return {"RMSE": float(np.sqrt(np.mean(errors**2))), "MAE": float(np.mean(np.abs(errors)))}
