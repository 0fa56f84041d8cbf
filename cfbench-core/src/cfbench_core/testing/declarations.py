"""Checks everything that a package declares in its files."""

from __future__ import annotations

import importlib

from cfbench_core.component_specs import component_specs
from cfbench_core.papers import papers_for, papers_of
from cfbench_core.reproduction_levels import levels_of_package
from cfbench_core.specs import resolve
from cfbench_core.testing.checks import Misbehaviour, require


def check_specs(package: str) -> None:
    """Checks everything that a package declares in its files; for a test in the package's own distribution.

    Every declaration that is read equals the one that executing the file gives; every target and configuration
    exists; every cited paper is listed in ``papers.toml`` and every listed paper is cited; ``reproduction.toml``, where
    there is one, can be read and states levels of the package's own components.

    Raises:
        Misbehaviour: names the first component that is wrong.
    """
    cited = set()
    specs = component_specs(package)
    for spec in specs:
        module = importlib.import_module(spec.target.partition(":")[0])
        executed = [getattr(module, "SPEC", None), *getattr(module, "SPECS", ())]
        require(spec in executed, f"{spec.id}: {module.__name__} declares something else when it is executed")
        for reference in (spec.target, spec.config):
            try:
                resolve(reference or spec.target)
            except (ImportError, AttributeError) as error:
                raise Misbehaviour(f"{spec.id}: {reference} does not exist: {error}") from error
        try:
            cited |= {paper.key for paper in papers_for(spec)}
        except ValueError as error:
            raise Misbehaviour(str(error)) from error
    unused = sorted(set(papers_of(package)) - cited)
    require(not unused, f"papers.toml of {package} lists {', '.join(unused)}, which no component cites")
    try:
        stated = levels_of_package(package)
    except ValueError as error:
        raise Misbehaviour(str(error)) from error
    strangers = sorted(set(stated) - {f"{spec.kind}/{spec.name}" for spec in specs})
    require(
        not strangers,
        f"reproduction.toml of {package} states a level of {', '.join(strangers)}, which is no component of it",
    )
