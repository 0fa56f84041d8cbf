"""Random draws, genetic search, or training rows of the other class: the library dice-ml as an explainer for cfbench."""
