"""Analyses of runs of the tabular suite; one module for each."""
