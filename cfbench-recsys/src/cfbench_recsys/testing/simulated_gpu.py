"""The checks of ``on_gpu.py`` with the simulated second device in place of a GPU, and without any tolerance.

with simulated_gpu(spec) as subject:
    explains_on_a_gpu_as_on_the_cpu(subject)
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from cfbench_core.component_specs import component_specs
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_core.testing import Subject
from cfbench_recsys.testing import on_gpu
from cfbench_recsys.testing.second_device import second_device_as_cuda


@contextmanager
def simulated_gpu(spec: ComponentSpec, **options: Any) -> Iterator[Subject]:
    """A component with options, to be checked where ``device: cuda`` is the simulated device."""
    # Modules find the simulated device only if they have been imported.
    explained = [one for one in component_specs("cfbench_recsys", "recommender") if one.name in on_gpu.MODELS]
    for one in [*explained, spec]:
        importlib.import_module(one.target.partition(":")[0])
    config = resolve(spec.config)(**options) if spec.config else None
    exact = {"gpu_is_there": lambda: True, "SCORES": 0.0, "TOLERANCE": 0.0, "SAME_EDITS": 1.0}
    with patch.dict(vars(on_gpu), exact), second_device_as_cuda():
        yield Subject(spec, config)
