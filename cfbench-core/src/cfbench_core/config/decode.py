"""YAML nodes into frozen dataclasses. All that is wrong is reported at once, a line each."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import types
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin

import yaml

from cfbench_core.config.code_references import reference_problem
from cfbench_core.config.component import (
    ConfiguredComponent,
    default_label,
    find_module,
    loaded,
    options_class,
)
from cfbench_core.config.document import Document
from cfbench_core.config.fields import (
    CodeReference,
    Distinct,
    EnvironmentVariable,
    InputFile,
    OfKind,
    Range,
    hints_of,
    type_name,
    unwrap,
)
from cfbench_core.config.imported import imported_spec
from cfbench_core.config.options_by_setting import (
    RESERVED,
    ProblemError,
    is_auto,
    limited_to_study,
    named_preset,
    options_by_combination,
    preset_label,
    renamed,
    unknown_combinations,
)
from cfbench_core.config.values import infinite_numbers, is_long_number, kind_of, name_problem, shown
from cfbench_core.errors import UserError, did_you_mean, unknown_key
from cfbench_core.plain_text import one_line
from cfbench_core.redaction import held_secret, variable_problem
from cfbench_core.registry import Component, Registry, installation_advice
from cfbench_core.specs import CORE, CORE_KINDS, ComponentSpec, plural
from cfbench_core.wording import count_of
from cfbench_core.yaml_nodes import MAPPING, MOST_ERRORS, TEXT, plain

WRONG = object()
"""Stands for a value that could not be decoded; its error is already in the list."""


def decode_experiment(document: Document, registry: Registry) -> tuple[Any, Any]:
    """The suite (an instance) and its configuration (an instance of ``suite.config``).

    Raises:
        UserError: with one line for everything that is wrong.
    """
    decoder = _Decoder(document, registry)
    name = decoder.suite_name()
    try:
        component = registry.find(name, "suite", name)
        suite = loaded(component.spec.target, component.spec, component.owner)()
    except UserError as error:
        raise UserError(f"{document.where(decoder.value_of('suite'))}: suite: {error}") from error
    decoder.suite = suite
    decoder.check_secrets()
    config = decoder.dataclass(document.root, suite.config, "")
    if config is not WRONG:
        for problem in unknown_combinations(config, getattr(suite, "models_key", ""), decoder.stated):
            decoder.wrong(*problem)
    decoder.raise_errors()
    return suite, limited_to_study(config, getattr(suite, "models_key", ""))


def decode_options(component: Component, document: Document, registry: Registry) -> ConfiguredComponent:
    """A component with its options, which are the whole of a document: ``--set`` of a command that runs one component.

    Raises:
        UserError: with one line for everything that is wrong.
    """
    spec, owner = component.spec, component.owner
    decoder = _Decoder(document, registry)
    config = options_class(spec, owner) if spec.config else _NothingToSet
    options = decoder.dataclass(document.root, config, "")
    decoder.raise_errors()
    return ConfiguredComponent(
        spec.kind, default_label(spec, options), spec, options if spec.config else None, owner
    )


def decode_dataclass(document: Document, cls: type) -> Any:
    """A document that is one dataclass and names no components: a schema, for example.

    Raises:
        UserError: with one line for everything that is wrong.
    """
    decoder = _Decoder(document, Registry([]))
    found = decoder.dataclass(document.root, cls, "")
    decoder.raise_errors()
    return found


def decode_settings(document: Document, cls: type, suite: str, registry: Registry) -> Any:
    """A document that is one dataclass and names components of a suite, for a command of that suite.

    Raises:
        UserError: with one line for everything that is wrong.
    """
    component = registry.find(suite, "suite", suite)
    decoder = _Decoder(document, registry)
    decoder.name, decoder.suite = suite, loaded(component.spec.target, component.spec, component.owner)()
    decoder.check_secrets()
    found = decoder.dataclass(document.root, cls, "")
    decoder.raise_errors()
    return found


class _Decoder:
    def __init__(self, document: Document, registry: Registry) -> None:
        self.document = document
        self.registry = registry
        self.suite: Any = None
        self.name = ""
        self.errors: list[str] = []
        self.stated: list[tuple[yaml.MappingNode, str]] = []  # each options_for, and where it stands

    @property
    def model_kind(self) -> str:
        """The kind of the suite's models; "" if it has none."""
        return str(getattr(self.suite, "model_kind", ""))

    # The document's head

    def value_of(self, key: str) -> yaml.Node:
        return next((v for k, v in self.document.root.value if k.value == key), self.document.root)

    def suite_name(self) -> str:
        node = self.value_of("suite")
        if node is self.document.root:
            suites = self.registry.suites()
            known = " or ".join(suites) or f"none is installed; try {installation_advice()}"
            raise UserError(f"{self.document.source}: suite: is missing; say which one ({known})")
        if not isinstance(node, yaml.ScalarNode):
            raise UserError(f"{self.document.where(node)}: suite: must be a name")
        self.name = node.value
        return self.name

    def check_secrets(self) -> None:
        """A configuration is stored with its results, so it must not hold the value of a secret."""
        for key, node in self.document.scalars():
            name = held_secret(node.value)
            if name:
                self.wrong(node, key, f"holds the value of ${name}; name the variable instead")

    # Errors

    def raise_errors(self) -> None:
        if len(self.errors) > MOST_ERRORS:
            more = len(self.errors) - MOST_ERRORS
            raise UserError(
                *self.errors[:MOST_ERRORS], f"{self.document.source}: and {count_of(more, 'more error')}"
            )
        if self.errors:
            raise UserError(*self.errors)

    def wrong(self, node: yaml.Node, path: str, message: str) -> Any:
        where = self.document.where(node)
        self.errors.append(f"{where}: {path}: {message}" if path else f"{where}: {message}")
        return WRONG

    # Values

    def dataclass(self, node: yaml.Node, cls: type, path: str, skip: frozenset[str] = frozenset()) -> Any:
        """A mapping node as an instance of ``cls``; the keys in ``skip`` were taken by the caller.

        A class with a ``shorthand``, the name of one of its keys, may be given as the value of that key alone.
        """
        shorthand = getattr(cls, "shorthand", None)
        if shorthand and isinstance(node, yaml.ScalarNode) and plain(node) is not None:
            named = yaml.ScalarNode(TEXT, shorthand, node.start_mark, node.end_mark)
            node = yaml.MappingNode(MAPPING, [(named, node)], node.start_mark, node.end_mark)
        if not isinstance(node, yaml.MappingNode):
            keys = ", ".join(field.name for field in dataclasses.fields(cls))
            return self.wrong(node, path, f"must be a mapping with the keys {keys}, got {shown(node)}")
        hints = hints_of(cls)
        known = [field.name for field in dataclasses.fields(cls)]
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inner = f"{path}.{key}" if path else key
            if key in skip:
                continue
            if key not in known:
                self.wrong(key_node, inner, unknown_key(key, known, getattr(self.suite, "config", None)))
            else:
                values[key] = self.value(value_node, hints[key], inner)
        for field in dataclasses.fields(cls):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if required and field.name not in values:
                inner = f"{path}.{field.name}" if path else field.name
                self.wrong(node, inner, f"is missing ({type_name(hints[field.name])})")
                values[field.name] = WRONG
        if any(value is WRONG for value in values.values()):
            return WRONG
        try:
            return cls(**values)
        except Exception as error:  # a check of the dataclass's own, in __post_init__; perhaps of a plugin
            reason = (
                str(error)
                if isinstance(error, (ValueError, UserError))
                else f"{type(error).__name__}: {error}"
            )
            return self.wrong(self.document.blamed(node, reason), path, one_line(reason))

    def value(
        self, node: yaml.Node, hint: Any, path: str, outer: Mapping[type, Any] = MappingProxyType({})
    ) -> Any:
        """A node as a value of type ``hint``; ``outer``: annotations of the union or list that it is a member of."""
        inner, own = unwrap(hint)
        notes = {**outer, **own}
        origin = get_origin(inner)
        if OfKind in notes:
            members = get_args(inner) if origin in (Union, types.UnionType) else (inner,)
            if types.NoneType in members and isinstance(node, yaml.ScalarNode) and plain(node) is None:
                return None
            many = any(get_origin(member) is tuple for member in members)
            return self.references(node, notes[OfKind].kind, path, many)
        if origin in (Union, types.UnionType):
            return self.union(node, hint, get_args(inner), notes, path)
        if origin is Literal:
            return self.choice(node, get_args(inner), path)
        if origin is tuple:
            return self.sequence(node, get_args(inner)[0], notes, path)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            return self.dataclass(node, inner, path)
        if origin in (dict, Mapping) or inner is dict:
            if not isinstance(node, yaml.MappingNode):
                return self.wrong(node, path, f"must be a mapping, got {shown(node)}")
            return self.mapping(node, path)
        return self.scalar(node, inner, notes, path)

    def mapping(self, node: yaml.MappingNode, path: str) -> Any:
        """A mapping whose keys only its component knows; numbers must be finite, because JSON has no others."""
        before = len(self.errors)
        for inner, place in infinite_numbers(node, path):
            self.wrong(inner, place, f"must be finite, got {shown(inner)}")
        return plain(node) if len(self.errors) == before else WRONG

    def scalar(self, node: yaml.Node, kind: Any, notes: Mapping[type, Any], path: str) -> Any:
        found = plain(node) if isinstance(node, yaml.ScalarNode) else None
        bounds = notes.get(Range)
        if (
            kind is float
            and isinstance(found, str)
            and re.fullmatch(r"[-+]?[0-9]{1,400}(\.[0-9]{0,400})?(e[-+]?[0-9]{1,9})?", found, re.I)
        ):
            found = float(found)  # YAML 1.1 reads 1e-3 as text, and so are numbers of more than 64 bits
        if kind is float and isinstance(found, int) and not isinstance(found, bool):
            found = float(found)
        if kind is str and isinstance(node, yaml.ScalarNode) and found is not None:
            found = node.value  # `name: 2024` is text where text is wanted
        fits = isinstance(found, kind) and not (kind in (int, float) and isinstance(found, bool))
        if not fits or (isinstance(found, float) and not math.isfinite(found)):
            limit = " of at most 64 bits" if kind is int and is_long_number(node) else ""
            return self.wrong(node, path, f"must be {kind_of(kind, bounds)}{limit}, got {shown(node)}")
        if bounds is not None and found not in bounds:
            return self.wrong(node, path, f"must be {kind_of(kind, bounds)}, got {shown(node)}")
        if InputFile in notes:
            return self.file(node, str(found), path)
        if CodeReference in notes:
            problem = reference_problem(str(found), notes[CodeReference].libraries)
            return self.wrong(node, path, problem) if problem else found
        if EnvironmentVariable in notes:
            problem = variable_problem(str(found), self.document.allowed_variables)
            return self.wrong(node, path, problem) if problem else found
        return found

    def file(self, node: yaml.Node, name: str, path: str) -> Any:
        folders = [self.document.folder]
        with contextlib.suppress(OSError):  # it may have been deleted
            folders = list(dict.fromkeys([self.document.folder, Path.cwd()]))
        try:
            for folder in folders:
                place = folder / Path(name).expanduser()
                if place.is_file():
                    return str(place.resolve())
        except (OSError, RuntimeError) as error:  # a name that is too long, or an unknown ~user
            reason = getattr(error, "strerror", None) or str(error)
            return self.wrong(node, path, f"no such file: {one_line(name, 100)} ({one_line(reason, 100)})")
        looked = " and ".join(str(folder) for folder in folders)
        return self.wrong(node, path, f"no such file: {one_line(name, 300)} (looked in {looked})")

    def choice(self, node: yaml.Node, choices: tuple[Any, ...], path: str) -> Any:
        found = plain(node) if isinstance(node, yaml.ScalarNode) else None
        for choice in choices:
            if found == choice and type(found) is type(choice):  # true is not 1
                return choice
        listed = ", ".join(str(choice) for choice in choices)
        hint = did_you_mean(str(found), [str(choice) for choice in choices])
        return self.wrong(node, path, f"must be one of {listed}, got {shown(node)}.{hint}")

    def union(
        self, node: yaml.Node, hint: Any, options: tuple[Any, ...], notes: Mapping[type, Any], path: str
    ) -> Any:
        """The first member that fits. When none does, one error that names them all."""
        if isinstance(node, yaml.ScalarNode) and plain(node) is None and types.NoneType in options:
            return None
        members = [option for option in options if option is not types.NoneType]
        before = len(self.errors)
        for member in members:
            found = self.value(node, member, path, notes)
            if found is not WRONG:
                del self.errors[before:]
                return found
        if len(members) == 1:
            return WRONG
        del self.errors[before:]
        bounds = f" {notes[Range]}" if Range in notes else ""
        words = [
            str(word) for member in members if get_origin(member) is Literal for word in get_args(member)
        ]
        nearest = did_you_mean(str(plain(node)), words) if isinstance(node, yaml.ScalarNode) else ""
        return self.wrong(
            node, path, f"must be {type_name(hint)}{bounds}, got {shown(node)}{nearest and '.'}{nearest}"
        )

    def sequence(self, node: yaml.Node, member: Any, notes: Mapping[type, Any], path: str) -> Any:
        """A list; a single value counts as a list of one."""
        of_items = {kind: note for kind, note in notes.items() if kind is not Distinct}  # that is of the list
        if isinstance(node, yaml.SequenceNode):
            items = [
                self.value(item, member, f"{path}[{place}]", of_items)
                for place, item in enumerate(node.value)
            ]
        else:
            items = [self.value(node, member, path, of_items)]
        if any(item is WRONG for item in items):
            return WRONG
        if Distinct in notes or get_origin(unwrap(member)[0]) is Literal:
            for place, item in enumerate(items):
                if item in items[:place]:
                    inner = f"{path}[{place}]"
                    return self.wrong(node.value[place], inner, f"{shown(node.value[place])} is given twice")
        return tuple(items)

    # Components

    def references(self, node: yaml.Node, kind: str, path: str, many: bool) -> Any:
        if not many:
            return self.reference(node, kind, path)
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        single = not isinstance(node, yaml.SequenceNode)
        found = [
            self.reference(item, kind, path if single else f"{path}[{place}]")
            for place, item in enumerate(nodes)
        ]
        labels: set[str] = set()
        for item, reference in zip(nodes, found, strict=True):
            if reference is not WRONG and reference.label in labels:
                self.wrong(item, path, f"two are called {reference.label!r}: give one a 'label'")
            elif reference is not WRONG:
                labels.add(reference.label)
        return WRONG if any(reference is WRONG for reference in found) else tuple(found)

    def reference(self, node: yaml.Node, kind: str, path: str) -> Any:
        """A component: its name, or a mapping with ``name`` (or ``import``), ``label`` and its options."""
        if isinstance(node, yaml.ScalarNode):
            name_node: yaml.Node | None = node
            import_node = label_node = None
            options_node = yaml.MappingNode(MAPPING, [], node.start_mark, node.end_mark)
        elif isinstance(node, yaml.MappingNode):
            given = {str(key.value): value for key, value in node.value}
            name_node, import_node, label_node = given.get("name"), given.get("import"), given.get("label")
            options_node = node
        else:
            return self.wrong(node, path, f"must be one {kind}: its name, or a mapping with 'name'")
        if (name_node is None) == (import_node is None):
            return self.wrong(
                node, path, f"needs either 'name' (cfbench list {plural(kind)}) or 'import' (module:Class)"
            )
        for key, given_node in (("name", name_node), ("import", import_node), ("label", label_node)):
            if given_node is not None and (problem := name_problem(given_node, key)):
                inner = path if given_node is node else f"{path}.{key}"
                return self.wrong(given_node, inner, problem)
        try:
            if import_node is not None:
                target = str(import_node.value)
                if kind in CORE_KINDS:
                    raise UserError(f"'import' cannot name one of the {plural(kind)}; install a plugin")
                spec, distribution = imported_spec(target, kind, self.name, self.suite), ""
            else:
                assert name_node is not None
                suite = CORE if kind in CORE_KINDS else self.name
                component = self.registry.find(suite, kind, str(name_node.value))
                spec = component.spec
                distribution = component.owner
                find_module(spec, distribution)
            config = options_class(spec, distribution) if spec.config else _NothingToSet
        except UserError as error:
            at = import_node or name_node or node
            suffix = "" if at is node else (".import" if import_node is not None else ".name")
            return self.wrong(at, path + suffix, str(error))
        preset = given.get("preset") if isinstance(node, yaml.MappingNode) else None
        try:
            if preset is not None and not is_auto(preset):
                options_node = named_preset(
                    self.document, options_node, preset, spec, config, self.model_kind
                )
            options = self.dataclass(options_node, config, path, skip=RESERVED)
            other = WRONG if options is WRONG else self.options_for(options_node, spec, config, path)
        except ProblemError as problem:
            return self.wrong(problem.node, f"{path}.{problem.key}", problem.message)
        if options is WRONG or other is WRONG:
            return WRONG
        label = default_label(spec, options)
        if label_node is None and (mixed := renamed(spec, label, other)):
            return self.wrong(node, path, mixed)
        own = None if label_node is None else str(label_node.value)
        label = own or preset_label(label, spec, options, node, preset)
        return ConfiguredComponent(
            kind, label, spec, options if spec.config else None, distribution, other if spec.config else ()
        )

    def options_for(self, node: yaml.MappingNode, spec: ComponentSpec, cls: type, path: str) -> Any:
        """Options for combinations of data and model (``options_by_setting.py``), by name; WRONG if some are wrong."""
        models_key = str(getattr(self.suite, "models_key", ""))
        nodes = options_by_combination(self.document, node, spec, cls, self.model_kind, models_key)
        self.stated += [
            (value, f"{path}.options_for") for key, value in node.value if key.value == "options_for"
        ]
        found = {
            name: self.dataclass(own, cls, f"{path}.options_for.{name}", skip=RESERVED)
            for name, own in nodes.items()
        }
        return WRONG if any(options is WRONG for options in found.values()) else tuple(found.items())


@dataclasses.dataclass(frozen=True)
class _NothingToSet:
    """The configuration of a component that has none."""
