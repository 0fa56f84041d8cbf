"""Metrics of counterfactuals."""
