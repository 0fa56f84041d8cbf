"""One number of threads for whoever computes: what makes ``inline`` and ``process`` agree in the last bit.

A sum of floating-point numbers depends on how it is split, so a matrix product on two threads may differ from
the one on four in its last bits. Environment variables set the number for libraries that are loaded later,
which is enough in a new worker; here, in a process where NumPy has been at work for long (a notebook, the
``inline`` executor), only the libraries themselves can be limited. threadpoolctl does that for every BLAS and
OpenMP; torch has a call of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def thread_variables(threads: int) -> dict[str, str]:
    """The environment of a process whose libraries shall use ``threads`` threads each."""
    return dict.fromkeys(_VARIABLES, str(threads))


@contextlib.contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Numerical libraries use ``threads`` threads inside; those loaded before get their own number back."""
    from threadpoolctl import threadpool_limits

    environment = {name: os.environ.get(name) for name in _VARIABLES}
    torch = sys.modules.get("torch")  # never imported from here
    torch_threads = torch.get_num_threads() if torch else 0
    os.environ.update(thread_variables(threads))
    if torch:
        torch.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        if torch:
            torch.set_num_threads(torch_threads)
        for name, value in environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
