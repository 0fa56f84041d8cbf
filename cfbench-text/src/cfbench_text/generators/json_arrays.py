"""Settings of a model as an array, so that they are stored in one safetensors file with its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

ByteArray = np.ndarray[Any, np.dtype[np.uint8]]


def json_array(settings: Mapping[str, Any]) -> ByteArray:
    """The settings as UTF-8 encoded JSON, one byte per element."""
    return np.frombuffer(json.dumps(settings).encode(), dtype=np.uint8).copy()


def json_of(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The inverse of :func:`json_array`."""
    found: dict[str, Any] = json.loads(np.asarray(array, dtype=np.uint8).tobytes().decode())
    return found
