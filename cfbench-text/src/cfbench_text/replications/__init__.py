"""Replications of papers about the factuality of explanation texts."""
