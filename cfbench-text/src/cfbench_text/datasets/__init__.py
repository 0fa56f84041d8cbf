"""Data sets of reviews, one file each."""
