"""Tables of external explanations: which explainers and cells they contain, checked before anything is computed."""

from __future__ import annotations

from cfbench_core import external_tables


class ExternalTable(external_tables.ExternalTable):
    form = f"{external_tables.ExternalTable.form}, or complete counterfactual rows"
