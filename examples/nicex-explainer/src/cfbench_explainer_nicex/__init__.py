"""NICE by its authors' library as an explainer for cfbench."""
