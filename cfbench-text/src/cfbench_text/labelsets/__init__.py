"""Data sets with human labels, for ``cfbench meta-evaluate``."""
