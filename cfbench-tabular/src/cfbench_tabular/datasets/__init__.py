"""Data sets: each reads one table, with its columns typed."""
