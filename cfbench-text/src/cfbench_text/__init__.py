"""The text suite of cfbench: does the reason that a recommender wrote agree with what the user said?

Data flow, each arrow a stage whose result is kept (``stages.py``; ``grid.py`` makes the cells)::

    reviews --extractor--> statements --template--> reference paragraphs
       |                                                 |
     split --> generator, fitted on the training part ---+--> texts --extractor--> statements --> scores

- ``triplets.py``: a statement is (statement, topic, sentiment); a paragraph is made of statements and taken
  apart again without loss. ``domains/``: the topics. ``wording.py``, ``splitting.py``: sentences and clauses.
- ``reviews.py``, ``splits.py``, ``corpus.py``: rows of reviews, the division by time, what generators see.
- components: ``datasets/``, ``extractors/`` (reviews and texts into statements), ``recommenders/`` (generators
  of explanations), ``judges/`` (does one statement follow from another?), ``metrics/``. Their protocols stand
  in the file ``base.py`` of each folder.
- A unit is one test row, named by user, item and time; references are joined by that name.
"""
