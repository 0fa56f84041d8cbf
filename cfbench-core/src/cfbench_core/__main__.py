"""``python -m cfbench_core``: the command ``cfbench``, with the interpreter that is named."""

import sys

from cfbench_core.cli import main

if __name__ == "__main__":  # spawned workers import this module under another name
    sys.exit(main())
