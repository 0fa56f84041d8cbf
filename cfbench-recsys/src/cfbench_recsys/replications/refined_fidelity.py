"""Refined fidelity (Baklanov et al. 2025): MF, VAE and NCF on MovieLens 1M.

Yahoo! Music and Pinterest, its other data, are not public.
"""

from __future__ import annotations

from cfbench_core.replications import PublishedItem, Replication, ReplicationStudy
from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(
    id="recsys/replication/refined-fidelity",
    summary="Refined fidelity: curves and fixed lengths of explanations (figure 1)",
    target=f"{__name__}:refined_fidelity",
    papers=("refinedfidelity2025",),
)

_STUDY = ("fidelity",)


def refined_fidelity(config: None = None) -> Replication:
    """What is run, and what is printed."""
    return Replication(
        title="Refined fidelity",
        paper="refinedfidelity2025",
        analysis="reproduction",
        options={"paper": "refined-fidelity"},
        other_data={"other_data": True},
        seeds=True,
        stored="replication-refined-fidelity",
        studies=(
            ReplicationStudy(
                name="fidelity",
                config="cfbench_recsys:replications/refined_fidelity.yaml",
                changes={"small": ("recommenders=[mf]", "protocol.users=100"), "paper": ()},
                minutes={"small": 24, "paper": 94},
            ),
        ),
        items=(
            PublishedItem(
                name="figure-1-left",
                caption="POS-P, NDCG-P, INS-P and DEL-P over the share of the profile",
                studies=_STUDY,
                stored="paper",
                reason="drawn without numbers; VAE and NCF are ours to add",
            ),
            PublishedItem(
                name="figure-1-right",
                caption="POS, CDCG, INS and DEL over the length of the explanation",
                studies=_STUDY,
                stored="paper",
                reason="drawn without numbers; VAE and NCF are ours to add",
            ),
            PublishedItem(
                name="claims", caption="twelve claims of sections 2.2 and 4.1", studies=_STUDY, stored="paper"
            ),
        ),
    )
