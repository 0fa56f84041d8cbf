"""A decoded configuration back as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cfbench_core.config.component import ConfiguredComponent, not_default


def resolved_document(config: Any, defaults: bool = True) -> dict[str, Any]:
    """A decoded configuration as plain data, ready for YAML; every default written out unless ``defaults`` is False."""

    def to_plain(value: Any) -> Any:
        if isinstance(value, ConfiguredComponent):
            return to_plain(value.document(defaults))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            every = [field.name for field in dataclasses.fields(value)]
            names = every if defaults else not_default(value)
            return {name: to_plain(getattr(value, name)) for name in names}
        if isinstance(value, (tuple, list)):
            return [to_plain(item) for item in value]
        if isinstance(value, Mapping):
            return {key: to_plain(item) for key, item in value.items()}
        return value

    document: dict[str, Any] = to_plain(config)
    return document
