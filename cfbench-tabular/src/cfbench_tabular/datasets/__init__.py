"""Data sets; one module for each, but one for those of the UCI repository (``published``)."""
