"""What Statement factuality prints: the numbers of its tables, and its headline claims with the statistic that decides each.

The claims and thresholds were written down from the paper's words and tables; the page on the replications lists those that
were added or changed after the study had been run. One printed number contradicts the text: StEnt-F1 of Att2Seq on Toys is
0.00410 in table IV, below the lowest value that section V-C names (0.61 %); 0.0410 would fit the precision and recall above
it. ``claim_statistics.py`` has the statistics.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from cfbench_core.verdicts import rounding

if TYPE_CHECKING:
    import pandas as pd

GENERATORS = ("nrt", "att2seq", "cer", "peter", "pepler", "xrec")
DOMAINS = ("toys", "clothes", "beauty", "sports", "cellphones")
OUR_NAMES = {
    "BERT-P": "BERTScore-P",
    "BERT-R": "BERTScore-R",
    "BERT-F1": "BERTScore-F",
    "BART": "BARTScore-F",
    "AlignScore": "AlignScore-P",
    "SummaC-ZS": "SummaC-ZS-P",
    "SummaC-Conv": "SummaC-Conv-P",
    "QuestEval": "QuestEval-F",
}
"""Metrics of which the paper prints one number under a name without a direction, or with another name."""
OF_REVIEWS = " of reviews"
"""Ends the name of a metric of table VII in the claims: it compares with reviews as they were written."""
UNNAMED = "AlignScore, SummaC and BARTScore"


def printed_numbers() -> pd.DataFrame:
    """Columns: table, page, section, dataset, model, metric, printed, printed_std, rounded_by; metrics under our names."""
    import pandas as pd

    table = _read("statement_factuality.csv")
    found = table.assign(
        page=table["page"].astype(int),
        printed=table["value"].astype(float),
        printed_std=pd.to_numeric(table["deviation"]),
        rounded_by=table["value"].map(rounding),
        metric=table["metric"].replace(OUR_NAMES),
    ).drop(columns=["value", "deviation"])
    return found.rename(columns={"domain": "dataset", "generator": "model"})


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, statistic, metric, subject, relation, threshold."""
    table = _read("statement_factuality_claims.csv")
    return table.assign(threshold=table["threshold"].astype(float))


def decisive_metrics() -> frozenset[str]:
    """The metrics that claims are about."""
    named = claims()[["metric", "subject"]].to_numpy().ravel()
    return frozenset(named) - {"", *GENERATORS, *DOMAINS}


def _read(name: str) -> pd.DataFrame:
    import pandas as pd

    with (resources.files("cfbench_text.published") / name).open(encoding="utf-8") as opened:
        return pd.read_csv(opened, dtype=str, keep_default_na=False)
