"""Pretrained models that components query: loading, cached responses, chat, encoders, classifiers of pairs.

No component that queries a model is part of a run without a configuration: the model is the user's choice.
"""
