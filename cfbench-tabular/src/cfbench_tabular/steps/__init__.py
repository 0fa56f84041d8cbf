"""The steps of the tabular suite: what the stages of ``cfbench_core.lifecycle`` call, in workers.

A unit is one row of the table; its name is the row number.
"""

REPEATED, SECOND_MODEL = "repeated explanations", "second model"
"""Roles of the stages that ``protocol.repeats`` computes with another seed."""
