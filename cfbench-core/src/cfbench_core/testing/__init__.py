"""The conformance kit: what the author of a component runs to verify it.

A kit is a list of checks, each a function with a question for a docstring. The checks below hold for every
component; a suite adds those of its own kinds, named in its spec as ``details={"conformance":
"package.module:checks"}``, a mapping from kind to checks. From the command line it is ``cfbench check ID``;
in a test::

    from cfbench_core.testing import checks_for, verify

    @pytest.mark.parametrize("check", checks_for("recsys/explainer/mine"), ids=str)
    def test_conformance(check):
        verify(check, "recsys/explainer/mine")

A failing check may be waived, but only by its name and with a reason that is then part of the report.
"""

from cfbench_core.testing.checks import (
    Check,
    CheckResult,
    Misbehaviour,
    NotApplicable,
    Report,
    Result,
    Subject,
    checks_of,
    require,
)
from cfbench_core.testing.declarations import check_specs
from cfbench_core.testing.every_component import CHECKS
from cfbench_core.testing.kinds import CORE_CONTRACTS, KIND_CHECKS, contract_of
from cfbench_core.testing.kit import check_component, checks_for, verify
from cfbench_core.testing.rendered_plugin import verify_rendered_plugin
from cfbench_core.testing.sameness import difference

__all__ = [
    "CHECKS",
    "CORE_CONTRACTS",
    "KIND_CHECKS",
    "Check",
    "CheckResult",
    "Misbehaviour",
    "NotApplicable",
    "Report",
    "Result",
    "Subject",
    "check_component",
    "check_specs",
    "checks_for",
    "checks_of",
    "contract_of",
    "difference",
    "require",
    "verify",
    "verify_rendered_plugin",
]
