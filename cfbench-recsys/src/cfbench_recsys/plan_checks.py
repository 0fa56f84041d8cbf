"""What a plan checks between an explainer's options and a recommender, beyond what both declare.

No stage imports this module: a change of what is checked does not change the key of a result.
"""

from __future__ import annotations

from cfbench_core.config import ConfiguredComponent
from cfbench_recsys.links import DEFAULT_LINK


def link_problem(explainer: ConfiguredComponent, recommender: ConfiguredComponent) -> str:
    """Why an explainer cannot explain the target that it is configured for, as far as the link says; "" if it can.

    Nothing is computed: the link is the option ``link`` of the recommender, else the attribute of its class. An explainer
    whose variants fix a target says in a property ``fixed_target`` of its configuration which one.
    """
    fixed = getattr(explainer.options, "fixed_target", None)
    if "probability" not in (fixed, getattr(explainer.options, "target", None)):
        return ""
    link = getattr(recommender.options, "link", None)
    if link is None:
        link = getattr(recommender.implementation(), "link", DEFAULT_LINK)
    if link != "identity":
        return ""
    advice = "use variant cfbench" if fixed else "use target logit or margin"
    return (
        "target probability needs a recommender with the link sigmoid or softmax, "
        f"but the scores of {recommender.label} are no logits (link identity); {advice}"
    )
