"""Numbers that papers print, and their claims, as data.

``cfexprec.csv``: tables 2 to 6 of CFExpRec, explainers, datasets and metrics under the names of cfbench;
``c2explainer-add`` is the paper's "C2Explainer", ``c2explainer`` its "C2Explainer (-add)", which adds no edges.
``deviation`` is the standard deviation over explanations; where a cell holds no number, ``state``
says what the paper says of it.
``cfexprec_claims.csv``: its headline claims, decided in ``analysis/published_claims.py``.
"""
