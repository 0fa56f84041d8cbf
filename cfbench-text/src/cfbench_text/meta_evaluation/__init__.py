"""Meta-evaluation: how well metrics, judges and extractors agree with people, see ``evaluate.py``."""
