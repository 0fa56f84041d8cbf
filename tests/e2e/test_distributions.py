"""What an index gets: sdists and wheels with licence, metadata and a page that renders, built the same twice."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path, PurePosixPath

import pytest

from .conftest import ROOT

DISTRIBUTIONS = sorted(path.parent.name for path in ROOT.glob("cfbench-*/pyproject.toml"))
EPOCH = "1700000000"
TOOLS = ("build", "hatchling", "twine")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of each distribution and the wheel that was built from that sdist."""
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (nox -s e2e installs them)")
    folder = tmp_path_factory.mktemp("built")
    for name in DISTRIBUTIONS:
        build(ROOT / name, folder)
    return folder


def build(source: Path, folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", folder, source]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def one(folder: Path, distribution: str, ending: str) -> Path:
    (found,) = folder.glob(f"{distribution.replace('-', '_')}-*{ending}")
    return found


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_wheel_and_sdist_hold_the_text_of_the_licence(distribution: str, built: Path) -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(one(built, distribution, ".whl")) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
        assert wheel.read(name) == licence
    with tarfile.open(one(built, distribution, ".tar.gz")) as sdist:
        (member,) = (member for member in sdist if PurePosixPath(member.name).match("*/LICENSE"))
        content = sdist.extractfile(member)
        assert content is not None and content.read() == licence


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_metadata_names_licence_pythons_and_source(distribution: str, built: Path) -> None:
    found = metadata(one(built, distribution, ".whl"))
    assert found["License-Expression"] == "Apache-2.0" and found.get_all("License-File") == ["LICENSE"]
    classifiers = found.get_all("Classifier", [])
    assert not [name for name in classifiers if name.startswith("License ::")]  # PEP 639: one or the other
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), flags=re.M)
    assert found["Requires-Python"] == f">={versions[0]}"
    tested = ", ".join(f'"{version}"' for version in versions)
    assert f"PYTHONS = ({tested})" in (ROOT / "noxfile.py").read_text("utf-8")
    urls = dict(line.split(", ", 1) for line in found.get_all("Project-URL", []))
    assert {"Source", "Issues", "Changelog"} <= set(urls) and all(
        u.startswith("https://") for u in urls.values()
    )
    with zipfile.ZipFile(one(built, distribution, ".whl")) as wheel:
        assert f"{distribution.replace('-', '_')}/py.typed" in wheel.namelist()  # as "Typing :: Typed" says


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_link_of_the_long_description_is_relative(distribution: str, built: Path) -> None:
    found = metadata(one(built, distribution, ".whl"))
    assert found["Description-Content-Type"] == "text/markdown"
    page = str(found.get_payload())
    assert page.startswith(f"# {distribution}\n")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.S)
    targets = re.findall(r"\]\(\s*<?([^)>\s]+)", prose) + re.findall(r"(?:href|src)=[\"']([^\"']+)", prose)
    assert not [target for target in targets if not re.match(r"https://|mailto:|#", target)]
    assert "docs/" not in re.sub(
        r"\(https://[^)]+\)", "", prose
    )  # a path that a reader of the index does not have


def test_the_long_descriptions_render(built: Path) -> None:
    files = sorted(map(str, built.iterdir()))
    assert len(files) == 2 * len(DISTRIBUTIONS)
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(files)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_two_builds_are_identical_to_the_byte(distribution: str, built: Path, tmp_path: Path) -> None:
    """The second is made from a copy with other times and modes, and its wheel without the sdist."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "dist", "build")
    copy = shutil.copytree(
        ROOT / distribution, tmp_path / distribution, ignore=ignored, copy_function=shutil.copyfile
    )
    shutil.copyfile(ROOT / ".gitignore", tmp_path / ".gitignore")
    again = tmp_path / "again"
    build(copy, again, "--sdist")
    build(copy, again, "--wheel")
    for ending in (".whl", ".tar.gz"):
        first, second = one(built, distribution, ending), one(again, distribution, ending)
        assert first.name == second.name
        identical = first.read_bytes() == second.read_bytes()
        assert identical, f"{first.name} differs"  # pytest would compare megabytes for hours


def test_all_state_one_version(built: Path) -> None:
    (version,) = {metadata(one(built, name, ".whl"))["Version"] for name in DISTRIBUTIONS}
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)
    minor = ".".join(version.split(".")[:2])
    for name in DISTRIBUTIONS:
        needed = metadata(one(built, name, ".whl")).get_all("Requires-Dist", [])
        siblings = [line for line in needed if line.startswith("cfbench-") and "extra ==" not in line]
        assert all(f">={minor}" in line for line in siblings), (name, siblings)


def test_the_script_sets_the_version_everywhere(tmp_path: Path) -> None:
    for path in [
        *ROOT.glob("cfbench-*/pyproject.toml"),
        ROOT / "CITATION.cff",
        ROOT / "scripts/set_version.py",
    ]:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    script = [sys.executable, tmp_path / "scripts/set_version.py"]
    refused = subprocess.run([*script, "1.2"], capture_output=True, text=True)
    assert refused.returncode == 2 and "MAJOR.MINOR.PATCH" in refused.stderr
    for version, least in (("1.2.0", "1.2"), ("1.2.0rc1", "1.2.0rc1")):
        done = subprocess.run([*script, version], capture_output=True, text=True)
        assert (done.returncode, done.stdout.strip()) == (0, version), done.stderr
        for name in DISTRIBUTIONS:
            project = tomllib.loads((tmp_path / name / "pyproject.toml").read_text("utf-8"))["project"]
            siblings = [line for line in project["dependencies"] if line.startswith("cfbench-")]
            assert project["version"] == version
            assert all(line.endswith(f">={least},<1.3") for line in siblings), siblings
    for version, code in (("1.2.0rc1", 0), ("1.3.0", 1)):
        checked = subprocess.run([*script, "--check", version], capture_output=True, text=True)
        assert checked.returncode == code, checked.stderr
    (tmp_path / "CITATION.cff").write_text("version: 9.9.9\n", "utf-8")
    differs = subprocess.run(script, capture_output=True, text=True)
    assert differs.returncode == 1 and "CITATION.cff: 9.9.9" in differs.stderr


def test_every_distribution_has_the_licence_of_the_project() -> None:
    """Each folder has a copy, since its sdist and ``pip install ./cfbench-x`` see nothing above it."""
    assert {(ROOT / name / "LICENSE").read_bytes() for name in DISTRIBUTIONS} == {
        (ROOT / "LICENSE").read_bytes()
    }
