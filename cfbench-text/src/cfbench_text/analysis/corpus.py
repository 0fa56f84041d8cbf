"""``corpus``: what all texts of a generator are together; no single text has these numbers.

- USR, unique sentence ratio (Li et al. 2020): distinct texts / texts. The more a generator repeats itself, the lower.
- FCR, feature coverage ratio: keywords of the domain in any text / keywords in any reference.
- DIV, feature diversity: keywords that two texts share, on average over all pairs; lower is more diverse.
- BLEU of the corpus (sacrebleu), 0 to 100: counts of all texts together.
- For each judge precision, recall and F1 of the corpus: entailed statements / statements over all texts, and their
  harmonic mean. The tables' F1 is the mean of each explanation's own.

Features are keywords of the domain, word for word (the originals have words of a sentiment lexicon).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.analyses import Figure
from cfbench_text.analysis.shared import cells_of, competing, tidied, written
from cfbench_text.domains import Domain, load_domain

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


class Corpus:
    def __init__(self, config: None = None) -> None: ...

    def why_not(self, runs: Sequence[Run]) -> str:
        return "" if written(runs) else "no texts were written"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        import pandas as pd

        lines = []
        for run, cells in cells_of(runs):
            judged = run.table("statements.parquet")
            for cell in cells:
                texts = run.explanations_of(cell.id)
                if not texts.empty:
                    said = judged[judged["cell"] == cell.id]
                    domain = load_domain(str(run.summaries("data")[str(cell.labels["dataset"])]["domain"]))
                    lines.append({**cell.labels, "role": cell.role, **of_corpus(texts, said, domain)})
        return pd.DataFrame(lines)

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        return ()

    def words(self, table: pd.DataFrame) -> str:
        """Who repeats itself most."""
        if table.empty:
            return ""
        models = competing(tidied(table))
        worst = models.loc[[models["USR"].idxmin()]].to_dict("records")[0]
        if worst["USR"] == 1:
            return "No text is written twice."
        return (
            f"{worst['model']} repeats itself most: {worst['texts']} texts on {worst['dataset']}, "
            f"{worst['distinct']} of them distinct (USR {worst['USR']:.3f})."
        )


def of_corpus(texts: pd.DataFrame, said: pd.DataFrame, domain: Domain) -> dict[str, Any]:
    """The numbers of one cell. texts: text, reference; said: the rows of ``statements.parquet``."""
    from sacrebleu.metrics import bleu

    given, references = texts["text"].tolist(), texts["reference"].tolist()
    features = [set(domain.keywords_in(text)) for text in given]
    wanted = {word for reference in references for word in domain.keywords_in(reference)}
    found: dict[str, Any] = {
        "texts": len(given),
        "distinct": len(set(given)),
        "USR": len(set(given)) / len(given),
        "FCR": len(set().union(*features) & wanted) / len(wanted) if wanted else float("nan"),
        "DIV": diversity(features),
        "corpus BLEU": bleu.BLEU().corpus_score(given, [references]).score,
    }
    for judge in said["judge"].drop_duplicates():
        right = said[said["judge"] == judge].assign(entailed=said["verdict"] == "entailed")
        shares = right.groupby("side")["entailed"].mean()
        precision, recall = (float(shares.get(side, 0.0)) for side in ("text", "reference"))
        harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        found |= {
            f"corpus P ({judge})": precision,
            f"corpus R ({judge})": recall,
            f"corpus F1 ({judge})": harmonic,
        }
    return found


def diversity(features: Sequence[set[str]]) -> float:
    """Mean number of features that two texts share. Each feature of c texts is shared by c (c - 1) / 2 pairs."""
    pairs = len(features) * (len(features) - 1) / 2
    counts = Counter(word for of_text in features for word in of_text)
    return sum(count * (count - 1) / 2 for count in counts.values()) / pairs if pairs else float("nan")
