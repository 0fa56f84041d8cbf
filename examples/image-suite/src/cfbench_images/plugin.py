"""The plugin: every component that the package declares."""

from cfbench_core.component_specs import PackagePlugin

PLUGIN = PackagePlugin("cfbench_images")
