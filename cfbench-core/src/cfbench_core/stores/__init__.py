"""Where finished work is stored. Components of kind "store", suite "core".

``file`` is a folder of this machine or of a shared disk; ``fsspec`` is an object store or a server that the machines reach
over the network. A store is constructed by :func:`open_store`, also in worker processes and on other machines, from its
settings as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfbench_core.store import Store

Remote = Mapping[str, Any]
"""Settings of a store that is not a folder: ``{"url": "s3://bucket/folder", "options": {...}}``."""


def open_store(root: Path | None = None, remote: Remote | None = None) -> Store:
    """The store in a folder, or at an address with a folder of this machine as its cache.

    Args:
        root: the folder; the default one if None.
        remote: the address; None for a store that is the folder.
    """
    if remote is None:
        return Store(root)
    from cfbench_core.stores.fsspec import FsspecStore

    return FsspecStore(remote, root)
