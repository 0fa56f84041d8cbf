"""Numbers that papers print, as data.

``cf_tabular.csv``: CF-tabular (de Oliveira and Martens 2021), tables 4 and 5 (average ranks, from the authors' tables to six
decimals), table A1 (quality of the networks on test rows), the shares that figures 6 and 7 draw, which follow from the
ranks, and what the text says about figures 4 and 5: standard deviations of the time in seconds, and shares of
counterfactuals that a second call reproduces ("maximum stability" is 1).
"""
