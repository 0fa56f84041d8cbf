"""The text suite of cfbench: do generated explanations agree with what the user wrote in the review?

Data flow; each arrow is a stage whose result is cached (``steps/``; ``suite.py`` declares the cells)::

    reviews --extractor--> statements --template--> reference paragraphs
       |                                                 |
     split --> generator, fitted on the training part ---+--> texts --extractor--> statements --> scores

- ``triplets.py``: a statement is a triplet (statement, topic, sentiment). A paragraph is rendered from statements and
  parsed back without loss. ``domains/``: the topics. ``third_person.py``, ``sentence_segmentation.py``: sentences and
  clauses.
- ``reviews.py``, ``splits.py``, ``corpus.py``: rows of reviews, the split by time, and what generators receive.
- Components: ``datasets/``, ``extractors/`` (statements from reviews and texts), ``generators/`` (write the
  explanations), ``judges/`` (does one statement follow from another?), ``metrics/``. Their contracts are the protocols
  of ``contracts.py``.
- A unit is one test row, identified by user, item and time. References are joined to texts by this identifier.
"""
