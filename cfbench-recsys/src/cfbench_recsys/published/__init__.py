"""Numbers that papers print, and their claims, as data.

``cfexprec.csv``: tables 2 to 6 of CFExpRec, explainers, datasets and metrics under the names of cfbench;
``c2explainer-add`` is the paper's "C2Explainer", ``c2explainer`` its "C2Explainer (-add)", which adds no edges.
``deviation`` is the standard deviation over explanations; where a cell holds no number, ``state``
says what the paper says of it.
``beyond_top_1.csv``: table 1 of Consistency beyond top-1. Refined fidelity prints no number in a table: its figure is a
drawing.
Numbers stand as the paper prints them, with their decimals and without the commas of thousands. The texts from which they
were transcribed have no page breaks: ``page`` was inferred from where tables and footnotes interrupt the text, page 1 being
that of the title. ``tests/test_printed_values.py`` reads all tables from the texts a second time.
``cfexprec_claims.csv``: headline claims of CFExpRec, decided in ``analysis/published_claims.py``.
"""
