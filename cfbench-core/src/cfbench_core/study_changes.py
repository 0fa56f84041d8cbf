"""Changes of a replication's study by ``--set``: a bare name takes the options that the study gives it.

Where a study lists ``{name: cadex, preset: as-published}``, the change ``explainers=[cadex]`` selects that entry. A plain
``cadex`` would be another method under the paper's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.config import Assignment, Document, one_or_several
from cfbench_core.config.code_references import IMPORT
from cfbench_core.config.document import shown_assignment
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.yaml_nodes import plain

DATA = "data"
"""Data sets are no methods of a paper: any others may be named."""


def changes_of_studies(changes: Sequence[str], data: Sequence[str] = ()) -> tuple[str, ...]:
    """The changes of a user of every study of a paper, with other data sets in place of those of the studies.

    Args:
        changes: as of ``--set``; a plain string is one change.
        data: as of ``--data``; a plain string is one data set. The studies keep their own if there is none.

    Raises:
        UserError: if the data sets are given twice, or another suite is chosen.
    """
    changes, data = one_or_several(changes), one_or_several(data)
    for change in changes:
        if re.split(r"[.=]", change)[0] == "suite":
            raise UserError(
                f"{shown_assignment(change)}: does not apply to reproduce: the paper determines the suite"
            )
    if not data:
        return tuple(changes)
    if any(change.startswith("data=") for change in changes):
        raise UserError("the data sets are given twice, by --data and by --set")
    return (Assignment(f"data=[{', '.join(data)}]", "--data", data), *changes)


def with_study_options(study: str, file: Path, own: Sequence[str], changes: Sequence[str]) -> list[str]:
    """The changes of a study at a scale (``own``), those of the user, and the study's options for bare names of these.

    A bare name stands for all entries of the study with that name, such as both variants of a method, but for those that
    the user gives as mappings. Mappings remain as the user gives them, and so do lists in which the study itself has
    only names.

    Raises:
        UserError: for a bare name that such a list of the study does not have.
    """
    document = Document.read(file)
    document.set(own)
    lists = _lists_with_options(document.root)
    document.set(changes)
    added = []
    for key, value in document.root.value:
        if (own_nodes := lists.get(key.value)) is None:
            continue
        nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
        mappings = [plain(node) for node in nodes if _is_mapping(node) and node not in own_nodes]
        chosen = [
            entry
            for node in nodes
            for entry in _entries(node, own_nodes, study, key.value)
            if _is_mapping(node) or entry not in mappings
        ]
        if chosen != [plain(node) for node in nodes]:
            text = yaml.safe_dump(chosen, default_flow_style=True, width=math.inf)
            added.append(f"{key.value}={text}")
    return [*own, *changes, *added]


def _lists_with_options(root: yaml.MappingNode) -> dict[str, list[yaml.Node]]:
    """The lists of components, by key, in which some component has options."""
    return {
        key.value: list(value.value)
        for key, value in root.value
        if key.value != DATA and isinstance(value, yaml.SequenceNode) and any(map(_has_options, value.value))
    }


def _is_mapping(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode)


def _has_options(node: yaml.Node) -> bool:
    entry = plain(node)
    return isinstance(entry, dict) and "name" in entry and len(entry) > 1


def _entries(node: yaml.Node, own: Sequence[yaml.Node], study: str, key: str) -> list[Any]:
    """What a member of a changed list stands for; ``own``: the members of the study's list."""
    name = plain(node)
    if not isinstance(name, str) or name.startswith(IMPORT) or any(node is one for one in own):
        return [name]
    entries = list(map(plain, own))
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in entries]
    if name not in names:
        known = [one for one in dict.fromkeys(names) if one is not None]
        raise UserError(
            f"--set {key}: the study {study} has no {name!r}.{did_you_mean(name, known)}  ({', '.join(known)}; "
            f"any other as a mapping: {{name: {name}}})"
        )
    return [entry for entry, one in zip(entries, names, strict=True) if one == name]
