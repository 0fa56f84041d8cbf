"""Classifiers: what is explained."""
