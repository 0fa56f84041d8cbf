"""Keeps components from changing anything but their own results.

- ``domains``: whose code a task runs; tasks with different code never share a worker process.
- ``packages``: which packages are the project's own.
- ``protection``: what components receive is read-only, and watched while components of other distributions run.
- ``fingerprints``: digests of the arrays in an object.
- ``functions``: functions of shared libraries that a component has replaced.
- ``global_state``: settings of the process (seeds, warnings, environment, ...), restored after each task.
"""
