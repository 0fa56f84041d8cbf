"""From the options of a command to a configuration that was read, checked and planned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli.downloads import data_access
from cfbench_core.errors import UserError

if TYPE_CHECKING:
    from cfbench_core.api import Prepared


def prepared(
    config: Path | None,
    *,
    changes: Sequence[str],
    suite: str | None,
    data_dir: Path | None,
    offline: bool,
    quiet: bool = False,
    planning: bool = False,
    allow_env: Sequence[str] = (),
    **options: Any,
) -> Prepared:
    """:func:`cfbench_core.api.prepare`, with downloads shown on stderr; ``planning``: with none."""
    from cfbench_core.api import prepare
    from cfbench_core.used_components import trust_notes

    if config is not None and suite is not None:
        raise UserError(
            f"--suite chooses a default configuration, but {config} is given and names its own suite"
        )
    with data_access(data_dir, offline, quiet, planning) as access:
        found = prepare(config, set=changes, suite=suite, access=access, allow_env=allow_env, **options)
    if not quiet:
        for line in trust_notes(found.config):
            click.echo(f"note: {line}", err=True)
    return found
