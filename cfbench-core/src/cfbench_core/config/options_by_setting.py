"""Options of a component that depend on where it is used: presets by name, ``preset: auto`` and ``options_for``.

A model is used on a dataset, an explainer for a model on a dataset. Such a combination is named by its components:
``ml-1m`` of a model, ``ml-1m-mf`` of an explainer. A configuration gives options for some of them::

    explainers:
      - {name: lxr, preset: auto}
      - {name: lxr, hidden: 32, label: small, options_for: {ml-1m-mf: {hidden: 64}}}

``preset: auto`` takes the component's preset of each combination; options next to it take precedence, those of nested
configurations one by one. Next to ``variant: paper`` a preset ``paper-ml-1m-mf`` is that of ``ml-1m-mf``. Where there is no
preset, and where ``options_for`` has no entry, the other options and the defaults hold. A run writes both as
``options_for`` into its ``config.yaml``, with the combinations of its datasets and models, so that its numbers do not
depend on the presets of a later version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from cfbench_core.config.component import ConfiguredComponent, default_label
from cfbench_core.config.document import Document
from cfbench_core.config.fields import nested_of
from cfbench_core.config.values import shown
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.presets import AUTO, presets_of
from cfbench_core.specs import ComponentSpec

RESERVED = frozenset({"name", "import", "label", "preset", "options_for"})
"""Keys of a component's mapping that are not options; no option may have these names."""

Nodes = Mapping[str, yaml.MappingNode]
"""Options as they stand in a document, by combination."""


class ProblemError(Exception):
    """What is wrong with a node, for the message of the decoder."""

    def __init__(self, node: yaml.Node, key: str, message: str) -> None:
        super().__init__(message)
        self.node, self.key, self.message = node, key, message


def named_preset(
    document: Document,
    node: yaml.MappingNode,
    name: yaml.Node,
    spec: ComponentSpec,
    config: type,
    model_kind: str,
) -> yaml.MappingNode:
    """A component's node with the options of the preset that it names, where it does not give them itself.

    Args:
        config: the class of the component's options.
        model_kind: the kind of the suite's models, for which ``auto`` is right too.

    Raises:
        ProblemError: if there is no such preset.
    """
    known = _known(name, spec)
    if not isinstance(name, yaml.ScalarNode) or name.value not in known:
        right = [*known, AUTO] if _has_combinations(spec, model_kind) else list(known)
        hint = did_you_mean(str(name.value), right) if isinstance(name, yaml.ScalarNode) else ""
        there = f" It has: {', '.join(right)}" if known else f" {spec.name} has no presets"
        raise ProblemError(name, "preset", f"no preset {shown(name)}.{hint or there}")
    return _together(node, _taken(document, name, name.value, known), config)


def preset_label(
    label: str, spec: ComponentSpec, options: Any, node: yaml.Node, preset: yaml.Node | None
) -> str:
    """What tables call a component with a preset and without a label of its own; ``label`` without a preset.

    Published options that are not those of the component's variant make another row: ``lime-rs-cfexprec`` is not
    ``lime-rs-cfbench``, but the preset ``paper`` or ``paper-ml-1m-mf`` of ``lxr`` is ``lxr-paper``. Presets that a
    search found are the same method, tuned; and with other options next to a preset, it is not what was published.
    """
    if not isinstance(preset, yaml.ScalarNode) or is_auto(preset) or not isinstance(node, yaml.MappingNode):
        return label
    name, variant = str(preset.value), str(getattr(options, "variant", ""))
    of_variant = variant and f"{name}-".startswith(f"{variant}-")
    changed = {str(key.value) for key, _ in node.value} - RESERVED
    published = "source" in presets_of(spec)[name].search and not changed
    return f"{spec.name}-{name}" if published and not of_variant else label


def _has_combinations(spec: ComponentSpec, model_kind: str) -> bool:
    """Whether a component may have options by data and model."""
    return spec.kind in (model_kind, "explainer")


def is_auto(name: yaml.Node | None) -> bool:
    """Whether a configuration has ``preset: auto``."""
    return isinstance(name, yaml.ScalarNode) and name.value == AUTO


def options_by_combination(
    document: Document,
    node: yaml.MappingNode,
    spec: ComponentSpec,
    config: type,
    model_kind: str,
    models_key: str,
) -> Nodes:
    """The options of a component's node by combination: of its presets, or of its ``options_for``.

    Presets for data sets and models that the document does not name are left out.

    Args:
        node: the component, the options of a named preset included. config: the class of its options.
        model_kind: the kind of the suite's models, and ``models_key`` the key that lists them.

    Raises:
        ProblemError: if the presets cannot be read, or ``options_for`` is not a mapping of names to options.
    """
    given = {str(key.value): value for key, value in node.value}
    auto, stated = is_auto(given.get("preset")), given.get("options_for")
    if not auto and stated is None:
        return {}
    key = "preset" if auto else "options_for"
    if not _has_combinations(spec, model_kind):
        raise ProblemError(given[key], key, f"a {spec.kind} has no options by data and model")
    if auto and stated is not None:
        raise ProblemError(stated, "options_for", "cannot stand next to 'preset: auto'")
    if auto:
        name = given["preset"]
        known = _known(name, spec)
        variant = given.get("variant")
        named = _by_combination(known, variant.value if isinstance(variant, yaml.ScalarNode) else "")
        return {
            combination: _together(node, _taken(document, name, preset, known), config)
            for combination, preset in named.items()
            if _may_be_of(document, spec, model_kind, models_key, combination)
        }
    return _stated(node, given["options_for"], config)


def _by_combination(known: Iterable[str], variant: str) -> dict[str, str]:
    """The names of presets by the combination they may be of: of a variant, ``paper-ml-1m-mf`` comes before ``ml-1m-mf``."""
    own = {name.removeprefix(f"{variant}-"): name for name in known if name.startswith(f"{variant}-")}
    return {**{name: name for name in known}, **own}


def auto_notes(document: Document, config: Any, models_key: str) -> Iterator[str]:
    """For each component with ``preset: auto``, a line: for which combinations there is a preset, and for which none."""
    for key, names in combinations(config, models_key):
        found = next((value for name, value in document.root.value if name.value == key), None)
        nodes = found.value if isinstance(found, yaml.SequenceNode) else [found]
        for node, component in zip(nodes, _components(config, key), strict=False):
            given = node.value if isinstance(node, yaml.MappingNode) else []
            if not any(name.value == "preset" and is_auto(value) for name, value in given):
                continue
            having = [name for name in names if name in dict(component.options_for)]
            lacking = [name for name in names if name not in having]
            parts = [f"takes the preset for {_some(having)}"] if having else []
            parts += [f"finds none for {_some(lacking)}"] if lacking else []
            yield f"{component.label}: preset: auto {' and '.join(parts)}"


def _some(names: list[str], most: int = 4) -> str:
    """The first few of names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _may_be_of(
    document: Document, spec: ComponentSpec, model_kind: str, models_key: str, preset: str
) -> bool:
    """Whether a preset is of a combination that a document may have, as far as it can be known before it is decoded."""
    datasets, models = _named(document, "data"), _named(document, models_key)
    if datasets is None:
        return True
    if spec.kind == model_kind:
        return preset in datasets
    if models is None:
        return any(preset.startswith(f"{dataset}-") for dataset in datasets)
    return preset in {f"{dataset}-{model}" for dataset in datasets for model in models}


def _named(document: Document, key: str) -> set[str] | None:
    """The names of the components under a key; None if there are none, or some have no name (``import``)."""
    found = next((value for name, value in document.root.value if name.value == key), None)
    names = set()
    for entry in found.value if isinstance(found, yaml.SequenceNode) else [found]:
        given = (
            {str(name.value): value for name, value in entry.value}
            if isinstance(entry, yaml.MappingNode)
            else {}
        )
        named = given.get("name") if given else entry
        if not isinstance(named, yaml.ScalarNode):
            return None
        names.add(str(named.value))
    return names or None


def _stated(node: yaml.MappingNode, given: yaml.Node, config: type) -> Nodes:
    if not isinstance(given, yaml.MappingNode):
        raise ProblemError(given, "options_for", f"must be a mapping of combinations, got {shown(given)}")
    found = {}
    for key, value in given.value:
        if not isinstance(value, yaml.MappingNode):
            raise ProblemError(
                value, f"options_for.{key.value}", f"must be a mapping of options, got {shown(value)}"
            )
        for inner, _ in value.value:
            if str(inner.value) in RESERVED:
                raise ProblemError(
                    inner,
                    f"options_for.{key.value}.{inner.value}",
                    "is no option; only options depend on the combination",
                )
        found[str(key.value)] = _together(value, node, config)
    return found


def renamed(spec: ComponentSpec, label: str, other: Iterable[tuple[str, Any]]) -> str:
    """Which combination has options by which a row of the name ``label`` would be called otherwise; "" if none has."""
    for combination, options in other:
        if (own := default_label(spec, options)) != label:
            return f"with its options for {combination} it is {own}, not {label}: list it apart, or give a 'label'"
    return ""


def unknown_combinations(
    config: Any, models_key: str, stated: Iterable[tuple[yaml.MappingNode, str]]
) -> Iterator[tuple[yaml.Node, str, str]]:
    """The entries of ``options_for`` whose combination the configuration does not have: node, place, message.

    Args:
        stated: each ``options_for``, and where it stands.
    """
    known = dict(combinations(config, models_key))
    for node, path in stated:
        names = known.get(path.partition("[")[0].partition(".")[0], [])
        for key, _ in node.value:
            if key.value not in names:
                hint = did_you_mean(str(key.value), names) or f" There is {', '.join(names)}"
                yield key, path, f"no combination {key.value!r} in this configuration.{hint}"


def limited_to_study(config: Any, models_key: str) -> Any:
    """A decoded configuration in which components have options only for the combinations of its datasets and models."""
    changes: dict[str, Any] = {}
    for key, names in combinations(config, models_key):
        components = _components(config, key)
        if any(component.options_for for component in components):
            changes[key] = tuple(_limited(component, names) for component in components)
    return dataclasses.replace(config, **changes) if changes else config


def combinations(config: Any, models_key: str) -> Iterator[tuple[str, list[str]]]:
    """The keys of components that are used for combinations, and the names of these."""
    datasets = list(dict.fromkeys(one.spec.name for one in _components(config, "data")))
    models = list(dict.fromkeys(one.spec.name for one in _components(config, models_key)))
    yield models_key, datasets
    yield "explainers", [f"{dataset}-{model}" for dataset in datasets for model in models]


def _components(config: Any, key: str) -> tuple[ConfiguredComponent, ...]:
    """The components under a key that may hold several; none if it holds something else."""
    found = getattr(config, key, ())
    return found if isinstance(found, tuple) else ()


def _limited(component: ConfiguredComponent, names: list[str]) -> ConfiguredComponent:
    own = tuple((name, options) for name, options in component.options_for if name in names)
    return dataclasses.replace(component, options_for=own)


def _known(name: yaml.Node, spec: ComponentSpec) -> Mapping[str, Any]:
    try:
        return presets_of(spec)
    except UserError as error:
        raise ProblemError(name, "preset", str(error)) from None


def _taken(document: Document, node: yaml.Node, name: str, known: Mapping[str, Any]) -> yaml.MappingNode:
    return document.brought(known[name].options, f"{document.where(node)}: preset {name!r}")


def _together(first: yaml.MappingNode, second: yaml.MappingNode, config: type) -> yaml.MappingNode:
    """The entries of both; where both have one, that of the first. Nested configurations are put together likewise."""
    given = {str(key.value): value for key, value in first.value}
    others = {str(key.value): value for key, value in second.value}
    both = {name: nested for name, nested in nested_of(config).items() if name in given and name in others}
    own = []
    for key, value in first.value:
        nested, other = both.get(str(key.value)), others.get(str(key.value))
        if nested and isinstance(value, yaml.MappingNode) and isinstance(other, yaml.MappingNode):
            own.append((key, _together(value, other, nested)))
        else:
            own.append((key, value))
    added = [(key, value) for key, value in second.value if str(key.value) not in given]
    return yaml.MappingNode(first.tag, [*own, *added], first.start_mark, first.end_mark)
