"""The recommender suite of cfbench: data sets, recommenders, protocol and metrics."""
