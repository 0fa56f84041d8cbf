"""Options of a method that exists in variants: as published, and as cfbench changes it.

A variant has default values of its own. An option whose default is None has the value of the variant; one that a variant
does not have cannot be set for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cfbench_core.errors import UserError


class Configuration(Protocol):
    """A configuration with an option ``variant``."""

    @property
    def variant(self) -> str: ...


Defaults = Mapping[str, Mapping[str, Any]]


def check_options(name: str, config: Configuration, defaults: Defaults) -> None:
    """Refuses options that belong to another variant than the configured one.

    Args:
        name: of the explainer, for the message.
        defaults: for each variant the options that it has, with their values.

    Raises:
        UserError: if an option is set that the variant does not have.
    """
    own = defaults[config.variant]
    for option in {option: None for options in defaults.values() for option in options}:
        if option not in own and getattr(config, option) is not None:
            owners = " and ".join(variant for variant, options in defaults.items() if option in options)
            raise UserError(f"{name}: {option} is an option of variant {owners}, not of {config.variant}")


def own_options(config: Configuration, defaults: Defaults) -> dict[str, Any]:
    """The options of the configured variant, with its values in place of None."""
    configured = {option: getattr(config, option) for option in defaults[config.variant]}
    return {
        option: defaults[config.variant][option] if value is None else value
        for option, value in configured.items()
    }
