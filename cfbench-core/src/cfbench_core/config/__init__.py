"""Configuration: one YAML document, decoded into frozen dataclasses, with errors that name the line and the remedy."""

from cfbench_core.config.component import ConfiguredComponent, create, loaded, options_class
from cfbench_core.config.decode import (
    decode_dataclass,
    decode_experiment,
    decode_options,
    decode_settings,
)
from cfbench_core.config.document import Assignment, Document, one_or_several
from cfbench_core.config.fields import (
    CodeReference,
    Distinct,
    EnvironmentVariable,
    FieldInfo,
    Help,
    InputFile,
    OfKind,
    Range,
    Search,
    fields_of,
)
from cfbench_core.config.imported import imported_spec
from cfbench_core.config.resolved import resolved_document

__all__ = [
    "Assignment",
    "CodeReference",
    "ConfiguredComponent",
    "Distinct",
    "Document",
    "EnvironmentVariable",
    "FieldInfo",
    "Help",
    "InputFile",
    "OfKind",
    "Range",
    "Search",
    "create",
    "decode_dataclass",
    "decode_experiment",
    "decode_options",
    "decode_settings",
    "fields_of",
    "imported_spec",
    "loaded",
    "one_or_several",
    "options_class",
    "resolved_document",
]
