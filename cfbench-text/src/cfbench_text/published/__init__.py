"""Numbers that papers print, as data.

``statement_factuality.csv``: Statement factuality (Kabongo and Guigue 2025), table II (statistics of the data sets) and
tables III to VII (means and standard deviations over the test rows). Metrics have the names of the columns here: BERT-F1
is BERTScore-F; AlignScore and SummaC, which the paper gives once, are the direction from the explanation to the reference
(``-P``), QuestEval and BARTScore the mean of both directions (``-F``). Att2Seq's StEnt-F1 on Toys is printed as 0.00410,
which is read as 0.0410: it lies between the values of other generators with the same precision and recall. Figure 2 prints
no numbers.

``statement_factuality_claims.csv``: sentences of the paper as statements that numbers decide (``published_claims.py``).
"""
