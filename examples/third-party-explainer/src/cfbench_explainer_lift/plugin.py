"""The plugin: every component that the package declares. Nothing is imported to list them."""

from cfbench_core.component_specs import PackagePlugin

PLUGIN = PackagePlugin("cfbench_explainer_lift")
