"""The stages of the recommender suite. Each is called with a task, writes files, and returns a summary.

read_data -> split_data -> fit_model | fit_checkpoints -> take_checkpoint
          -> choose_units | choose_tuning_units -> [prepare_explainer]
          -> explain_implicit | explain_explicit | derive_explicit | import_explanations
          -> score_implicit | score_explicit

Explanations pass between stages as the table of the contract, with identifiers of the data file: so
explanations external are scored by the same code, to the same numbers.
"""
