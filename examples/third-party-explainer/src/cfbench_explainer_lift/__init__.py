"""Items that make the explained one likelier: P(target | item) / P(target): an explainer for cfbench."""
