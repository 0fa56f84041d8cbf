"""Changes until the class flips, then back towards the row with a tabu list: cfnow as an explainer for cfbench."""
