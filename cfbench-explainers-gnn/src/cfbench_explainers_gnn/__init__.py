"""Counterfactual explainers for graph recommenders."""
