"""A table of explanations made elsewhere: whose they are and for which cells, told before anything is computed."""

from __future__ import annotations

from cfbench_core import external_tables


class ExternalTable(external_tables.ExternalTable):
    form = f"{external_tables.ExternalTable.form}, or whole rows"
