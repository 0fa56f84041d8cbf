"""Settings of hypothesis for the tests of all distributions."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("hypothesis"):  # the sessions docs, e2e and view of nox do without
    from hypothesis import HealthCheck, settings

    # A machine with much other work is no reason to fail; in CI the examples stay the same ones.
    settings.register_profile(
        "any-speed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any-speed")
