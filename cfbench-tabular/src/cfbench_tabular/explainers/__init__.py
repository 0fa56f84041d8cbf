"""Explainers: each looks for the counterfactual of a row."""
