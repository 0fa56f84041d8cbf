"""Replications of papers about counterfactual explanations of recommenders."""
