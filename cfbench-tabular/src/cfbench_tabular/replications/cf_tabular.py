"""CF-tabular (de Oliveira and Martens 2021): ten algorithms on 22 data sets.

Three of the data sets have no public raw data in the form that the study used (ISOLET, SDD, Internet Advertisements): 19
remain, with 3,325 of 3,925 factuals. Three studies measure the same tables: with the columns as the paper reads them (its
splits, scales, factuals and networks), with the columns as cfbench reads them (whole numbers, steps, relations between
columns, networks trained here), and as the paper reads them with the algorithms as their authors published them, at the
small scale alone: SynAS and Growing Spheres as published would take hours for all factuals.
"""

from __future__ import annotations

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(
    id="tabular/replication/cf-tabular",
    summary="CF-tabular: ten counterfactual algorithms on 22 tabular datasets (tables 3 to 6 and A1, figures 4 to 9)",
    target=f"{__name__}:cf_tabular",
    papers=("cftabular2021",),
)

_FEW = ("data=[balance-scale, hayes-roth, ecoli, iris, statlog-german-credit]",)
_ALL = ("published-reading", "own-reading", "as-published")
_FILES = dict.fromkeys(
    ("small", "paper"), "the splits, factuals and networks of the study, as tabular/ in a data directory"
)
_ALL_SETS = (
    "ISOLET, SDD and Internet Advertisements are missing: their raw data are not public in the study's form"
)


def cf_tabular(config: None = None) -> Replication:
    """What is run, and what is printed."""
    return Replication(
        title="CF-tabular",
        paper="cftabular2021",
        analysis="reproduction",
        stored="replication-cf-tabular",
        studies=(
            ReplicationStudy(
                name="published-reading",
                config="cfbench_tabular:replications/cf_tabular.yaml",
                changes={"small": _FEW, "paper": ()},
                minutes={"small": 4, "paper": 39},
                needs=_FILES,
            ),
            ReplicationStudy(
                name="own-reading",
                config="cfbench_tabular:replications/cf_tabular_own_reading.yaml",
                changes={"small": (*_FEW, "protocol.factuals=20"), "paper": ()},
                minutes={"small": 6, "paper": 30},
            ),
            ReplicationStudy(
                name="as-published",
                config="cfbench_tabular:replications/cf_tabular_as_published.yaml",
                changes={"small": (*_FEW, "protocol.factuals=10")},
                minutes={"small": 7.1},
                needs=_FILES,
            ),
        ),
        items=(
            PublishedItem(
                name="table-1",
                caption="characteristics of the algorithms",
                reason="nothing is measured; 'cfbench describe ALGORITHM' has ours",
            ),
            PublishedItem(
                name="table-2",
                caption="characteristics of the data sets",
                reason="nothing is measured; 'cfbench list datasets --suite tabular' has ours",
            ),
            PublishedItem(
                name="table-3",
                caption="definitions of the metrics",
                reason="a table of definitions; 'cfbench list metrics --suite tabular' has ours",
            ),
            PublishedItem(
                name="table-4",
                caption="average ranks, valid counterfactuals",
                studies=_ALL,
                rows=("table 4",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="table-5",
                caption="average ranks, valid and realistic counterfactuals",
                studies=_ALL,
                rows=("table 5",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="table-6",
                caption="claims: where each algorithm is among the best",
                studies=_ALL,
                rows=("table 6",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="claims",
                caption="claims of the abstract, results and conclusion, with the statistic that decides each",
                studies=_ALL,
                rows=("claims",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="table-a1",
                caption="area under the ROC curve and accuracy of the networks",
                studies=("published-reading",),
                rows=("table A1",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="figure-4",
                caption="standard deviation of the time per explanation",
                studies=_ALL,
                rows=("figure 4",),
                stored="paper",
                reason="times of another machine: not comparable by value",
            ),
            PublishedItem(
                name="figure-5",
                caption="counterfactuals that a second call reproduces",
                studies=("published-reading",),
                rows=("figure 5",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="figure-6",
                caption="factuals with a valid counterfactual",
                studies=_ALL,
                rows=("figure 6",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="figure-7",
                caption="factuals with a valid and realistic counterfactual",
                studies=_ALL,
                rows=("figure 7",),
                stored="paper",
                reason=_ALL_SETS,
            ),
            PublishedItem(
                name="figure-8",
                caption="decision tree of search strategies, one data type and metric",
                reason="its text gives no tree; from the runs of table-4 'cfbench advise RUN --set by=strategy' draws ours",
            ),
            PublishedItem(
                name="figure-9",
                caption="scores of the algorithms that trees give for one setting",
                reason="the setting is not printed; from the runs of table-4 'cfbench advise RUN' gives ours",
            ),
            PublishedItem(
                name="table-a2",
                caption="constraints of the data sets",
                reason="nothing is measured; they are part of the data sets of the study's reading",
            ),
            *(
                PublishedItem(
                    name=name, caption=caption, reason="a drawing that explains; nothing is measured"
                )
                for name, caption in (
                    ("figure-1", "realistic and unrealistic counterfactuals"),
                    ("figure-2", "steps of the study"),
                    ("figure-3", "means and ranks that contradict each other"),
                )
            ),
        ),
    )
