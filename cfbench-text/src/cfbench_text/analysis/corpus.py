"""``corpus``: properties of all texts of a generator together, which no single text has.

- USR, unique sentence ratio (Li et al. 2020): distinct texts / texts. A generator that repeats itself has a low value.
- FCR, feature coverage ratio: keywords of the domain in any text / keywords in any reference.
- DIV, feature diversity: the number of keywords that two texts share, averaged over all pairs; lower is more diverse.
- Corpus BLEU (sacrebleu), 0 to 100: from the counts of all texts together.
- For each judge, precision, recall and F1 of the corpus: entailed statements / statements over all texts, and their
  harmonic mean. The F1 in the tables of a run is the mean over explanations. A side without statements, or of which
  all verdicts are undecided, has no precision (or recall), and there is no F1, as in ``topics`` and by the formula of
  Statement factuality; F1 is 0 only if nothing of either side is entailed.

Features are keywords of the domain, matched literally (the originals use words of a sentiment lexicon).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.analyses import Figure
from cfbench_core.specs import ComponentSpec
from cfbench_text.analysis.shared import cells_of, competing, harmonic_mean, tidied, written
from cfbench_text.domains import Domain, load_domain
from cfbench_text.metrics.bleu import clear_cache

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run
    from cfbench_text.reviews import IntArray

SPEC = ComponentSpec(
    id="text/analysis/corpus",
    summary="How diverse are a generator's texts, and what do they cover?",
    target=f"{__name__}:Corpus",
    papers=("li2020nete",),
)


WORDS = ["judge", "side", "verdict"]


class Corpus:
    def __init__(self, config: None = None) -> None: ...

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if written(runs) else "no texts were written"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        import pandas as pd

        lines = []
        for run, cells in cells_of(runs):
            for cell in cells:
                domain = load_domain(str(run.summaries("data")[str(cell.labels["dataset"])]["domain"]))
                texts = Texts(domain)
                for some in run.batches("explanations.parquet", ["text", "reference"], [cell.id]):
                    texts.add(some["text"].tolist(), some["reference"].tolist())
                if texts.count:
                    statements = run.batches("statements.parquet", WORDS, [cell.id])
                    numbers = {**texts.numbers(), **of_statements(statements)}
                    lines.append({**cell.labels, "role": cell.role, **numbers})
        return pd.DataFrame(lines)

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        return ()

    def words(self, table: pd.DataFrame) -> str:
        """The generator that repeats itself most."""
        if table.empty:
            return ""
        models = competing(tidied(table))
        worst = models.loc[[models["USR"].idxmin()]].to_dict("records")[0]
        if worst["USR"] == 1:
            return "No text occurs twice."
        return (
            f"{worst['model']} repeats itself most: {worst['texts']} texts on {worst['dataset']}, "
            f"{worst['distinct']} of them distinct (USR {worst['USR']:.3f})."
        )


class Texts:
    """Counts over texts and their references, which are passed in parts and not stored."""

    def __init__(self, domain: Domain) -> None:
        self.count = 0
        self._domain = domain
        self._distinct: set[bytes] = set()
        self._features: Counter[str] = Counter()
        self._wanted: set[str] = set()
        self._ngrams: Any = 0

    def add(self, texts: Sequence[str], references: Sequence[str]) -> None:
        self.count += len(texts)
        self._distinct.update(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
        self._features.update(word for text in texts for word in set(self._domain.keywords_in(text)))
        self._wanted.update(word for reference in references for word in self._domain.keywords_in(reference))
        self._ngrams = self._ngrams + ngrams(texts, references)

    def numbers(self) -> dict[str, Any]:
        covered = len(self._features.keys() & self._wanted)
        return {
            "texts": self.count,
            "distinct": len(self._distinct),
            "USR": len(self._distinct) / self.count,
            "FCR": covered / len(self._wanted) if self._wanted else float("nan"),
            "DIV": diversity(self._features, self.count),
            "corpus BLEU": corpus_bleu(self._ngrams),
        }


def of_statements(parts: Iterable[pd.DataFrame]) -> dict[str, float]:
    """Precision, recall and F1 of all statements together, by judge. parts: judge, side, verdict."""
    counts: dict[str, Counter[tuple[str, bool]]] = {}
    for statements in parts:
        for judge, side, verdict in zip(*(statements[name].tolist() for name in WORDS), strict=True):
            if verdict != "undecided":
                counts.setdefault(judge, Counter())[side, verdict == "entailed"] += 1
    found: dict[str, float] = {}
    for judge, of_judge in counts.items():
        precision, recall = (
            of_judge[side, True] / total
            if (total := of_judge[side, True] + of_judge[side, False])
            else math.nan
            for side in ("text", "reference")
        )
        found |= {
            f"corpus P ({judge})": precision,
            f"corpus R ({judge})": recall,
            f"corpus F1 ({judge})": harmonic_mean(precision, recall),
        }
    return found


def ngrams(texts: Sequence[str], references: Sequence[str]) -> IntArray:
    """What BLEU counts, summed over the texts: n-grams that match (1 to 4), n-grams there are, lengths of both."""
    from sacrebleu.metrics import bleu

    found = bleu.BLEU().corpus_score(texts, [references])
    clear_cache()
    return np.array([*found.counts, *found.totals, found.sys_len, found.ref_len], dtype=np.int64)


def corpus_bleu(counted: IntArray) -> float:
    """0 to 100, from the sum of :func:`ngrams`."""
    from sacrebleu.metrics import bleu

    matching, there, (long, wanted) = (part.tolist() for part in np.split(counted, [4, 8]))
    found = bleu.BLEU.compute_bleu(matching, there, long, wanted, smooth_method="exp")
    return float(found.score)


def diversity(features: Mapping[str, int], texts: int) -> float:
    """Mean number of features that two texts share, from how many texts have each: c of them are c (c - 1) / 2
    pairs."""
    pairs = texts * (texts - 1) / 2
    return sum(count * (count - 1) / 2 for count in features.values()) / pairs if pairs else float("nan")
