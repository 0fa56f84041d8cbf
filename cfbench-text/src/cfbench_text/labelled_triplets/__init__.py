"""Texts with labelled triplets, for ``cfbench evaluate-extractor``.

``*.jsonl`` has the labels of texts that may not be redistributed: for each text its id, a digest, and the character spans
of its statements with topic and sentiment. The texts are read from the user's copy of the data (``sets.py``).
"""
