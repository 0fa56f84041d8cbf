"""Exit codes. Part of the contract (``docs/explanation/design.md``)."""

OK = 0
FAILED = 1
"""Some cells failed, or a check did."""
WRONG = 2
"""The configuration or the call is wrong."""
NOTHING_TO_RUN = 3
INTERNAL = 70
"""A fault of cfbench itself; not part of the contract."""
STOPPED = 130
