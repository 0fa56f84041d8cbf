"""Numbers that papers print, and their claims, as data.

``statement_factuality.csv``: tables II to VII of Statement factuality, by section; ``deviation`` is the standard deviation
over test rows. Numbers stand as the paper prints them, with their decimals; ``page`` was inferred from where tables and
footnotes interrupt the text, which has no page breaks. ``tests/test_printed_values.py`` reads all tables from the text a
second time. The values of figure 2 are not printed. StEnt-F1 of Att2Seq on Toys is printed with five decimals (0.00410);
its neighbours suggest 0.0410. ``statement_factuality_claims.csv``: its headline claims, decided in
``analysis/published_factuality.py``.
"""
