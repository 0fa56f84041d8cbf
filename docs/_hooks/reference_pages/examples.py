"""The studies of examples/ as a page: what each measures, its commands, and its configuration."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def page() -> str:
    """Studies first, then the plugins with the first sentence of their README."""
    parts = [
        "# Examples",
        "",
        "Studies and plugins in the folder `examples` of the source tree. Data sets that are not free to ship are fetched "
        "by `cfbench data fetch NAME`, or read from the folder that `CFBENCH_DATA_DIR` names.",
        "",
        "## Studies",
        "",
    ]
    for path in sorted(EXAMPLES.glob("*.yaml")):
        parts += _study(path)
    parts += ["## Plugins", ""]
    for readme in sorted(EXAMPLES.glob("*/README.md")):
        parts.append(
            f"- `examples/{readme.parent.name}`: {_first_paragraph(readme.read_text(encoding='utf-8'))}"
        )
    return "\n".join([*parts, ""])


def _study(path: Path) -> list[str]:
    """The comment at its top as text and commands, then the whole file, folded."""
    lines = path.read_text(encoding="utf-8").splitlines()
    top = [line[1:] for line in lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]]
    commands = [line.strip() for line in top if line.startswith("   ")]
    words = " ".join(line.strip() for line in top if not line.startswith("   "))
    shown = ["```sh", *commands, "```", ""] if commands else []
    body = [f"    {line}".rstrip() for line in lines[len(top) :]]
    return [
        f"### {path.stem}", "", words, "", *shown,
        f'??? note "examples/{path.name}"', "", "    ```yaml", *body, "    ```", "",
    ]  # fmt: skip


def _first_paragraph(text: str) -> str:
    """Of a README: what follows its title, up to the first empty line; links to docs/ as seen from reference/."""
    paragraphs = [part for part in text.split("\n\n") if part.strip() and not part.startswith("#")]
    return " ".join(paragraphs[0].split()).replace("](../../docs/", "](../") if paragraphs else ""
