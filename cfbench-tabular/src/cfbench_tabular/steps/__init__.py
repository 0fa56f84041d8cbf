"""The steps of the tabular suite: what the stages of ``cfbench_core.lifecycle`` call, in workers.

A unit is one row of the table; its name is the row number.
"""

REPEATED = "repeated explanations"
"""The role of the explanations that ``protocol.repeats`` computes with another seed."""

RETRAINED = "retrained models"
"""The role of the models that are trained again for an explainer that needs them."""

UNSEEN = "unseen retrained models"
"""The role of those that are trained again for the metric ``retraining``."""
