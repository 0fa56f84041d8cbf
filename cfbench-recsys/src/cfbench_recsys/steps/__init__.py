"""The steps of the recommender suite: what the stages of ``cfbench_core.lifecycle`` call, in workers.

Explanations pass between stages as the table of the contract, with identifiers of the data file, so external explanations
are scored by the same code, to the same numbers.
"""

WITHHELD = "withheld"
"""The role of the stage that lists the users from whom no explainer may learn: those who are explained."""
