"""The command ``cfbench``. Each command is a file of ``commands/``, imported only when it is called."""

from cfbench_core.cli.root import main

__all__ = ["main"]
