"""Replications of papers about counterfactual explanations of tabular classifiers."""
