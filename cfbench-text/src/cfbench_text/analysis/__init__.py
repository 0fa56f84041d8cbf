"""Analyses of finished runs, one file each."""
