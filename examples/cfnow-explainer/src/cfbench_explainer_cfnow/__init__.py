"""The library cfnow, a tabu search for counterfactuals, as an explainer for cfbench."""
