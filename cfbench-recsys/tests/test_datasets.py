"""What is registered: light to list, and every reference leads somewhere."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from cfbench_core.component_specs import component_specs
from cfbench_core.data_files import DataFiles
from cfbench_core.data_status import files_of
from cfbench_core.specs import ComponentSpec, resolve

DATASETS = component_specs("cfbench_recsys", "dataset")


def test_listing_and_configuring_data_sets_imports_nothing_heavy() -> None:
    code = (
        "import sys; from cfbench_core.component_specs import component_specs\n"
        "from cfbench_core.specs import resolve\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'pyarrow', 'torch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "for spec in component_specs('cfbench_recsys', 'dataset'): resolve(spec.config), resolve(spec.target)\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("spec", DATASETS, ids=lambda spec: spec.name)
def test_a_spec_agrees_with_its_component(spec: ComponentSpec) -> None:
    target, config = resolve(spec.target), resolve(str(spec.config))
    assert dataclasses.is_dataclass(config)
    assert callable(target.find) and callable(target.load)
    files = files_of(spec)
    assert files is None or bool(spec.details["embedded"]) == bool(files.package)
    if isinstance(files, DataFiles):
        assert (files.id, files.suite) == (spec.name, spec.suite)
        assert files.licence in str(spec.details["licence"]) or str(spec.details["licence"]) in files.licence
        downloaded = {name for file in files.downloads for name in file.saved}
        assert not files.downloads or any(set(form.files) <= downloaded for form in files.forms)
        if "counts" in spec.details:  # of the others no paper gives counts
            assert spec.details["counts"] == resolve(spec.target.partition(":")[0] + ":EXPECTED")
