"""Explainers, which generate counterfactuals."""
