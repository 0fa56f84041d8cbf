"""Tabular suite of cfbench: a row that the classifier would call otherwise, near and realistic."""
