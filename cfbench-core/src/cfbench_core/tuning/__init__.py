"""``cfbench tune``: a search for the options of one component, judged on validation data only.

- ``protocol.py``: what a suite says: the stages of a trial, and where its value stands.
- ``space.py``: what is searched, from the ``Search`` annotations of the component's configuration.
- ``sampler.py``: which options come next, by optuna, given all earlier trials.
- ``journal.py``: the trials so far, on disk.
- ``search.py``: the search itself. ``results.py``: the configuration and the preset that come of it.
"""

from cfbench_core.tuning.protocol import TrialPlan, Tunable, mean_score, reported

__all__ = ["TrialPlan", "Tunable", "mean_score", "reported"]
