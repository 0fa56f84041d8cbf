"""Explainers for recommenders, and controls. One file each."""
