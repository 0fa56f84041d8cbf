"""Explainers made for recommenders, and the controls that bound them. One file each."""
