"""A component that a configuration names, with its options decoded."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from cfbench_core.config.fields import InputFile, hints_of, unwrap
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.specs import Capabilities, ComponentSpec, resolve

if TYPE_CHECKING:
    from cfbench_core.registry import Component


@dataclass(frozen=True)
class ConfiguredComponent:
    """A component of the configuration.

    Attributes:
        kind: "explainer", ...
        label: its name in tables; the component's own name unless the configuration gives a ``label``.
        spec: what its plugin says of it.
        options: an instance of its configuration dataclass, None when there is nothing to set.
        distribution: who brought it, "cfbench-recsys 0.1.0"; empty for a class named by ``import:``.
        options_for: other options for some combinations of data and model, by name; see ``options_by_setting.py``.
    """

    kind: str
    label: str
    spec: ComponentSpec
    options: Any = None
    distribution: str = ""
    options_for: tuple[tuple[str, Any], ...] = ()

    def used_for(self, *names: str) -> ConfiguredComponent:
        """The component with its options for a combination: the names of the dataset, and of the model if it explains one.

        Its label stays. A component with ``options_for`` is never created itself, only what this returns.
        """
        options = dict(self.options_for).get("-".join(names), self.options)
        inner = {name: one.used_for(*names) for name, one in _components_in(options).items()}
        if not self.options_for and all(one is getattr(self.options, name) for name, one in inner.items()):
            return self
        options = dataclasses.replace(options, **inner) if inner else options
        return dataclasses.replace(self, options=options, options_for=())

    def parameters(self) -> Mapping[str, Any]:
        """All that determines what the component does, as JSON: for the parameters of a stage.

        The code behind ``target`` and ``config`` counts in the stage's key, see :mod:`cfbench_core.lifecycle.code`.
        """
        return self._parameters

    @functools.cached_property
    def _parameters(self) -> Mapping[str, Any]:
        if self.options_for:
            raise ValueError(f"{self.label}: its options depend on data and model; call used_for() first")
        return {
            "component": self.spec.id,
            "target": self.spec.target,
            "config": self.spec.config,
            "options": _plain_options(self.options, ConfiguredComponent.parameters),
            "files": _file_digests(self.options),
        }

    @property
    def needs(self) -> Mapping[str, Capabilities]:
        """What it needs of its partners with these options: what its plugin says, and what its configuration adds.

        A configuration whose options decide says so in a property ``needs``, of the same form as a spec's.
        """
        found = {partner: dict(needed) for partner, needed in self.spec.needs.items()}
        for partner, needed in getattr(self.options, "needs", {}).items():
            own = found.setdefault(partner, {})
            for axis, values in needed.items():
                own[axis] = own.get(axis, frozenset()) | values
        return found

    def implementation(self) -> Any:
        """The component's class.

        Raises:
            UserError: when it cannot be imported.
        """
        return loaded(self.spec.target, self.spec, self.distribution)

    def create(self) -> Any:
        """The component itself: its class, called with its options.

        Raises:
            UserError: when it cannot be imported.
        """
        self.implementation()
        return create(self.parameters())

    def with_options(self, changes: Mapping[str, Any]) -> ConfiguredComponent:
        """The same component with some options changed; ``outer.inner`` is an option of a nested configuration.

        Raises:
            ValueError: when its configuration refuses them. Types and ranges are not checked.
        """
        options = _plain_options(self.options, lambda component: component)
        for name, value in changes.items():
            *outer, last = name.split(".")
            inner = options
            for key in outer:
                inner = inner[key]
            inner[last] = value
        config = type(self.options)
        changed = config(**_with_tuples(config, options))
        named = self.label != default_label(self.spec, self.options)
        label = self.label if named else default_label(self.spec, changed)
        return dataclasses.replace(self, label=label, options=changed)

    def document(self, defaults: bool = True) -> str | dict[str, Any]:
        """As it would stand in a configuration, every default written out unless ``defaults`` is False."""
        options = _plain_options(self.options, lambda component: component.document(defaults))
        if not defaults and self.options is not None:
            options = {name: options[name] for name in not_default(self.options)}
        own = {} if self.label == default_label(self.spec, self.options) else {"label": self.label}
        name = {"name": self.spec.name} if self.distribution else {"import": self.spec.target}
        other = {"options_for": self._other_options(defaults)} if self.options_for else {}
        if not (options or own or other) and self.distribution:
            return self.spec.name
        return {**name, **own, **options, **other}

    def _other_options(self, defaults: bool) -> dict[str, dict[str, Any]]:
        """``options_for`` as plain data; without ``defaults`` what differs from the component's own options."""

        def plain(options: Any) -> dict[str, Any]:
            return _plain_options(options, lambda component: component.document(defaults))

        own = plain(self.options)
        return {
            name: {key: value for key, value in plain(options).items() if defaults or value != own[key]}
            for name, options in self.options_for
        }


def with_defaults(component: Component) -> ConfiguredComponent:
    """An installed component with the defaults of its configuration."""
    spec, owner = component.spec, component.owner
    options = options_class(spec, owner)() if spec.config else None
    return ConfiguredComponent(spec.kind, default_label(spec, options), spec, options, owner)


def default_label(spec: ComponentSpec, options: Any) -> str:
    """What tables call a component to which the configuration gives no label: its name, and its variant if it has one.

    Options that say what the component really is (the file of a table, the class of an estimator) may have a property
    ``default_label``.

    A method of a paper exists as published and as cfbench improves it, by an option ``variant``; the label of a row
    says which one it is: ``cf2-paper``, ``cf2-cfbench``.
    """
    own = getattr(options, "default_label", None)
    if isinstance(own, str) and own:
        return own
    variant = getattr(options, "variant", None)
    return f"{spec.name}-{variant}" if isinstance(variant, str) else spec.name


def loaded(target: str, spec: ComponentSpec, distribution: str) -> Any:
    """What ``target`` (``"package.module:Name"``) of a component names.

    Raises:
        UserError: when it cannot be imported. A plugin's components may be broken though its list of them is not.
    """
    try:
        return resolve(target)
    except Exception as error:  # somebody else's module: whatever it raises is the reason
        first_line = (str(error).strip().splitlines() or [""])[0]
        by = f" of {distribution}" if distribution else ""
        raise UserError(
            f"{spec.id}{by} cannot be used: {target}: {type(error).__name__}: {first_line}"
        ) from error


def options_class(spec: ComponentSpec, distribution: str) -> type:
    """The dataclass of a component's configuration; ``spec.config`` is not None.

    Raises:
        UserError: when it cannot be imported, or is no dataclass, or its annotations cannot be understood.
    """
    assert spec.config is not None
    found = loaded(spec.config, spec, distribution)
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise UserError(f"{spec.id} cannot be used: {spec.config} is not a dataclass")
    try:
        hints_of(found)
    except NameError as error:
        raise UserError(
            f"{spec.id} cannot be used: {spec.config}: {error} (its annotations need what they name at run time)"
        ) from error
    return found


def find_module(spec: ComponentSpec, distribution: str) -> None:
    """Looks whether the module of a component's implementation is there, without importing it.

    Raises:
        UserError: when it is not.
    """
    module = spec.target.partition(":")[0]
    try:
        found = importlib.util.find_spec(module)
    except Exception as error:  # a package above it cannot be imported
        found, why = None, f": {type(error).__name__}: {error}".splitlines()[0]
    else:
        why = ""
    if found is None:
        by = f" of {distribution}" if distribution else ""
        raise UserError(f"{spec.id}{by} cannot be used: no module {module}{why}")


def create(component: ConfiguredComponent | Mapping[str, Any]) -> Any:
    """The component that :meth:`ConfiguredComponent.parameters` describes; in a worker, from a stage's parameters.

    An option that names another component holds the component when a run is planned, and its parameters in a worker.
    """
    parameters = component.parameters() if isinstance(component, ConfiguredComponent) else component
    implementation = resolve(parameters["target"])
    if parameters["config"] is None:
        return implementation(None)
    config = resolve(parameters["config"])
    return implementation(config(**_with_tuples(config, parameters["options"])))


def _with_tuples(config: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """JSON back into what a configuration dataclass holds: lists into tuples, mappings into nested dataclasses.

    Also a list of mappings into a tuple of dataclasses. Parameters of another component stay as they are.
    """
    hints = hints_of(config)

    def restore(value: Any, hint: Any) -> Any:
        inner, _ = unwrap(hint)
        if isinstance(value, (list, tuple)):
            member = get_args(inner)[0] if get_origin(inner) is tuple else Any
            return tuple(restore(item, member) for item in value)
        if inner is ConfiguredComponent or ConfiguredComponent in get_args(inner):
            return value
        if isinstance(value, dict) and dataclasses.is_dataclass(inner) and isinstance(inner, type):
            return inner(**_with_tuples(inner, value))
        return value

    return {name: restore(value, hints[name]) for name, value in options.items()}


def _plain_options(options: Any, form: Callable[[ConfiguredComponent], Any]) -> dict[str, Any]:
    """An instance of a configuration dataclass by field, nested ones too; ``form``: of a component that it names."""

    def plain(value: Any) -> Any:
        if isinstance(value, ConfiguredComponent):
            return form(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        if isinstance(value, Mapping):
            return {key: plain(inner) for key, inner in value.items()}
        return value

    return {} if options is None else dict(plain(options))


def _components_in(options: Any) -> dict[str, ConfiguredComponent]:
    """The other components that the options of a component name, by field."""
    if options is None:
        return {}
    found = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {name: value for name, value in found.items() if isinstance(value, ConfiguredComponent)}


def not_default(config: Any) -> list[str]:
    """The fields of a dataclass instance whose values are not their defaults."""

    def default(field: dataclasses.Field[Any]) -> Any:
        return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()

    return [
        field.name for field in dataclasses.fields(config) if getattr(config, field.name) != default(field)
    ]


def _file_digests(options: Any) -> dict[str, str]:
    if options is None:
        return {}
    config: type = type(options)
    hints = hints_of(config)
    return {
        field.name: file_digest(Path(path))
        for field in dataclasses.fields(options)
        if InputFile in unwrap(hints[field.name])[1] and (path := getattr(options, field.name)) is not None
    }
