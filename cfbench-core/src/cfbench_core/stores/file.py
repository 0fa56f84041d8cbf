"""Artifacts in a folder: ``$CFBENCH_CACHE_DIR``, or the user's cache folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(
    id="core/store/file",
    summary="The cache folder of this machine, or a shared folder ($CFBENCH_CACHE_DIR)",
    target="cfbench_core.store:Store",
)
