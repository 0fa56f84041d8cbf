"""The life cycle that every suite shares: data -> model -> units -> [explainer] -> explanations -> scores.

A suite subclasses :class:`cfbench_core.lifecycle.suite.LifecycleSuite` and brings *steps*, functions that know what its
data, models, units and answers are. Everything else is here: the grid of cells, stages, chunks, random streams, timing
and counting of model queries, tables, external explanations, keys.

This package imports nothing heavy at its top; modules that run in workers (``stages``, ``tables``, ``models``) do.
"""
