"""Models that other software trained, as weights of cfbench's recommenders: ``cfbench convert``.

``trained_models`` reads a file as data, ``formats`` recognises whose it is, ``convert`` puts users and items into the order
of a dataset and writes safetensors, ``published`` fetches what papers published.
"""

from cfbench_recsys.conversion.convert import Conversion, convert

__all__ = ["Conversion", "convert"]
