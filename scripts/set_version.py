"""Sets the version of all distributions: ``python scripts/set_version.py 0.2.0``; without one it shows the current version.
``python scripts/set_version.py --check 0.2.0`` fails if this is not the version, as the release workflow does with its tag.

The version of a distribution is stated once, in its ``pyproject.toml``; cfbench reads it from the installed metadata. All
distributions and CITATION.cff move together, and a distribution needs the minor version of the others that it was made with.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


def projects(root: Path = ROOT) -> list[Path]:
    """The ``pyproject.toml`` of each distribution."""
    return sorted(root.glob("cfbench-*/pyproject.toml"))


def versions(root: Path = ROOT) -> dict[str, str]:
    """The stated version by file, relative to ``root``."""
    found = {
        path.relative_to(root).as_posix(): str(tomllib.loads(path.read_text("utf-8"))["project"]["version"])
        for path in projects(root)
    }
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), flags=re.M)
    return {**found, "CITATION.cff": cited.group(1) if cited else ""}


def set_version(version: str, root: Path = ROOT) -> None:
    """Writes ``version`` into every file, and the range of its minor version into the dependencies on each other."""
    if not VERSION.fullmatch(version):
        raise ValueError(f"a version is MAJOR.MINOR.PATCH, maybe with a1, b1 or rc1, got {version!r}")
    major, minor = map(int, version.split(".")[:2])
    final = version.replace(".", "").isdigit()
    least = f"{major}.{minor}" if final else version  # 0.2.0rc1 is below 0.2
    for path in projects(root):
        text = path.read_text("utf-8")
        text = re.sub(r'^version = "[^"]*"$', f'version = "{version}"', text, count=1, flags=re.M)
        text = re.sub(r'"(cfbench-[a-z-]+)>=[^,"]+,<[^"]+"', rf'"\g<1>>={least},<{major}.{minor + 1}"', text)
        path.write_text(text, "utf-8")
    citation = root / "CITATION.cff"
    stated = citation.read_text("utf-8")
    citation.write_text(re.sub(r"^version: .*$", f"version: {version}", stated, flags=re.M), "utf-8")


def main(arguments: list[str]) -> int:
    expected = arguments.pop() if len(arguments) == 2 and arguments[0] == "--check" else None
    if expected is not None:
        arguments = []
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__)
        return 2
    if arguments:
        try:
            set_version(arguments[0])
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
    stated = versions()
    if len(set(stated.values())) > 1:
        print("\n".join(f"{path}: {version}" for path, version in stated.items()), file=sys.stderr)
        return 1
    current = next(iter(stated.values()))
    if expected not in (None, current):
        print(
            f"the version is {current}, not {expected}: run python scripts/set_version.py {expected}",
            file=sys.stderr,
        )
        return 1
    print(current)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
