"""Fields of distributions in each form that installers write, against the parser of the standard library."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from cfbench_core.distribution_metadata import field_of, fields_of, requirements_of

HEAD = "Metadata-Version: 2.1\nName: cfbench-lab\nVersion: 1.2\n"
REQUIRES = "Requires-Dist: numpy >=2\nRequires-Dist: torch ; extra == 'gpu'\n"
FORMS = {
    "wheel": {"lab.dist-info/METADATA": f"{HEAD}{REQUIRES}\nName: not this\nRequires-Dist: nor: this\n"},
    "folded": {
        "lab.dist-info/METADATA": f"{HEAD}License: one line\n  and another: one\n\ttoo\nSummary: short\n"
    },
    "setuptools": {"lab.egg-info/PKG-INFO": HEAD, "lab.egg-info/requires.txt": "numpy>=2\n\n[gpu]\ntorch\n"},
    "distutils": {"lab-1.2.egg-info": f"{HEAD}Summary: short\n"},
}


def written(folder: Path, form: str) -> Path:
    for name, text in FORMS[form].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_fields_and_requirements_are_those_of_the_standard_library(form: str, tmp_path: Path) -> None:
    (distribution,) = metadata.distributions(path=[str(written(tmp_path, form))])
    expected = distribution.metadata
    assert expected["Version"] == "1.2"
    for name in ("Name", "Version", "Summary", "License", "Home-page"):
        value = expected.get(name)
        assert field_of(distribution, name) == (value and " ".join(value.split()))
    assert requirements_of(distribution) == list(distribution.requires or [])


def test_what_is_absent_has_no_fields(tmp_path: Path) -> None:
    (tmp_path / "half-1.0.dist-info").mkdir()
    (distribution,) = metadata.distributions(path=[str(tmp_path)])
    assert fields_of(distribution) == fields_of(None) == {}
    assert requirements_of(distribution) == []
