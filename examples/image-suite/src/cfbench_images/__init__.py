"""Counterfactual explanations of image classifiers, as a suite of cfbench."""
