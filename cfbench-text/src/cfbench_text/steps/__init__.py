"""The steps of the text suite: what the stages of ``cfbench_core.lifecycle`` call, in workers. A unit is a test row.

The memory use of a stage does not grow with the texts, with two exceptions: reading the data splits all reviews, and a
generator is fitted to all its training data. All others read the rows that they need.
"""
