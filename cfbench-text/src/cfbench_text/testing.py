"""The conformance kit of the suite."""

checks: dict[str, tuple[()]] = {}
