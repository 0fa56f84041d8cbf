"""Classifiers, whose predictions are explained."""
