"""Methods that exist in two variants: as cfbench improves them, and as their authors published them.

The configuration of such a component has ``variant``, the options of ``variant: cfbench`` next to it, and those of
``variant: paper`` in a dataclass of their own, under ``paper``. An option of one variant has no meaning in the other:
:func:`check_variant` refuses it, so that no row carries a setting without effect.
"""

from __future__ import annotations

from typing import Any, Literal

from cfbench_core.config.component import not_default
from cfbench_core.errors import UserError

Variant = Literal["cfbench", "paper"]


def check_variant(config: Any, shared: frozenset[str] = frozenset()) -> None:
    """Refuses options of the other variant whose value is not their default.

    Args:
        config: a dataclass with ``variant`` and ``paper``.
        shared: options that both variants have.

    Raises:
        UserError: if there is such an option.
    """
    changed = set(not_default(config))
    if config.variant == "cfbench":
        if "paper" in changed:
            raise UserError("paper: these are options of variant: paper, and the variant is cfbench")
        return
    for name in sorted(changed - shared - {"variant", "paper"}):
        raise UserError(f"{name}: is an option of variant: cfbench; those of variant: paper are under paper")
