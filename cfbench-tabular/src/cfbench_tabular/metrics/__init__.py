"""Metrics: what a counterfactual is worth."""
