"""Numbers that papers print, as data.

``cf_tabular.csv``: CF-tabular (de Oliveira and Martens 2021), tables 4 and 5 (average ranks), table A1 (quality of the
networks on test rows), the shares that figures 6 and 7 draw, which follow from the ranks, and what the text says about
figures 4 and 5: standard deviations of the time in seconds, and shares of counterfactuals that a second call reproduces
("maximum stability" is 1).

- ``printed``: the number as the paper prints it, with its decimals; empty where it prints none (RUC and RMC in tables 4
  and 5, figures 6 and 7). The paper omits a zero at the end: "8" in a table of ranks with one decimal is 8.0.
- ``authors``: the number in the authors' own tables, which have more decimals. One of the 400 ranks that both have is not
  the other one rounded: coverage of SEDC on numerical data in table 5 is printed as 4.2, and 4.253 there.
- ``page``: of the table, or of the sentence. Pages 11 to 14, 18 and 19 have no running head in the text from which the
  numbers were transcribed; those of tables 4 and 5 and of figures 6 and 7 follow from the length of the text between.

``tests/test_printed_values.py`` reads all of them from the paper a second time.
"""
