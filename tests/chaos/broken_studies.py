"""Configurations and data files that are broken in random ways. Each function returns what is wrong."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import studies
import yaml
from hostile_values import DATA_TEXTS, HOSTILE_TEXTS, HOSTILE_VALUES

SUITES: dict[str, Callable[[Path], dict[str, object]]] = {
    "recsys": studies.recsys,
    "tabular": studies.tabular,
    "text": studies.text,
}


def bad_configuration(draw: random.Random, suite: str, folder: Path) -> str:
    """Writes ``study.yaml`` and what it reads; returns what is wrong with it."""
    document = _valid(draw, suite, folder)
    how = draw.choice(
        ("value",) * 8 + ("key", "missing", "append", "text", "text", "bytes", "deep", "set-like")
    )
    if how == "text":
        wrong = draw.choice(HOSTILE_TEXTS)
        text = yaml.safe_dump(document, sort_keys=False)
        text = draw.choice((wrong + text, text + wrong, wrong))
        _write(folder, text.encode("utf-8", "surrogatepass"))
        return f"text {wrong[:40]!r}"
    if how == "bytes":
        return _broken_bytes(draw, folder, yaml.safe_dump(document, sort_keys=False))
    holder, key, place = draw.choice([*_places(document)])
    value = draw.choice(HOSTILE_VALUES)
    case = f"{how} at {place}"
    if how == "value":
        holder[key] = value
        case += f": {str(value)[:40]!r}"
    elif how == "key" and isinstance(holder, dict):
        holder[
            draw.choice((f"{key}x", str(key)[:-1], str(key).upper(), "name", "import", "label", "1", "é"))
        ] = value
    elif how == "missing" and isinstance(holder, dict):
        del holder[key]
    elif how == "deep":
        inner: Any = value
        for _ in range(draw.choice((3, 30, 60, 300))):
            inner = draw.choice(([inner], {"a": inner}))
        holder[key] = inner
    elif isinstance(holder[key], list):
        holder[key].append(draw.choice((value, *holder[key], *holder[key])))
    else:
        holder[key] = [holder[key], holder[key]]
    _write(
        folder,
        yaml.safe_dump(document, sort_keys=False, allow_unicode=draw.random() < 0.5).encode(
            "utf-8", "replace"
        ),
    )
    return case


def _valid(draw: random.Random, suite: str, folder: Path) -> dict[str, Any]:
    """A configuration that can be planned, with all options of some components written out."""
    from cfbench_core.config.component import with_defaults
    from cfbench_core.registry import installed

    document: dict[str, Any] = json.loads(json.dumps(SUITES[suite](folder)))
    kinds = {"recommenders": "recommender", "classifiers": "classifier", "generators": "generator", "judges": "judge",
             "explainers": "explainer", "metrics": "metric", "data": "dataset", "extractor": "extractor"}  # fmt: skip
    known = [key for key, kind in kinds.items() if installed().components(kind, suite)]
    for key in draw.sample(known, min(2, len(known))):
        component = draw.choice(installed().components(kinds[key], suite))
        try:
            options = with_defaults(component).document()
        except (TypeError, ValueError):  # an option has no default, or none that is usable here
            options = component.spec.name
        if key == "extractor" or (key == "data" and draw.random() < 0.5):
            document[key] = options
        else:
            document[key] = [*document.get(key, []), options]
    protocol = document.setdefault("protocol", {})
    if suite == "recsys":
        protocol.update(
            {"level": ["item", "list"], "format": ["implicit"], "scope": ["user-only"], "users": 3}
        )
    document.update(
        seed=draw.choice((0, 7)), limits={"seconds": 60.0, "memory_gb": 4.0}, workers=1, threads=1
    )
    return json.loads(json.dumps(document))  # no value stands in it twice


def _places(value: Any, place: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every value of a document: what holds it, under which key, and where."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key, f"{place}.{key}"
        yield from _places(inner, f"{place}.{key}")


def _broken_bytes(draw: random.Random, folder: Path, text: str) -> str:
    data = bytearray(text.encode())
    how = draw.choice(("flip", "cut", "utf-16", "latin-1", "insert", "swap", "directory", "pipe", "empty"))
    if how == "flip":
        for _ in range(draw.choice((1, 5))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        data = data[: draw.randrange(len(data))]
    elif how == "utf-16":
        data = bytearray(text.encode("utf-16"))
    elif how == "latin-1":
        data += "label: Nóbrega\n".encode("latin-1")
    elif how == "insert":
        at = draw.randrange(len(data))
        data[at:at] = draw.choice(
            (b"\t", b"\0", b"\xff", b"*", b"&", b"!", b"[", b"}", b"\n---\n", b"\xef\xbb\xbf", b"\x85", b'"')
        )
    elif how == "swap":
        lines = text.splitlines(keepends=True)
        draw.shuffle(lines)
        data = bytearray("".join(lines).encode())
    if how == "directory":
        (folder / "study.yaml").mkdir()
    elif how == "pipe" and hasattr(os, "mkfifo"):
        os.mkfifo(folder / "study.yaml")
    else:
        _write(folder, b"" if how == "empty" else bytes(data))
    return f"bytes: {how}"


def _write(folder: Path, data: bytes) -> None:
    (folder / "study.yaml").write_bytes(data)


def bad_data(draw: random.Random, suite: str, folder: Path) -> str:
    document = SUITES[suite](folder)
    _write(folder, yaml.safe_dump(document, sort_keys=False).encode())
    (path,) = [path for path in folder.iterdir() if path.name != "study.yaml"]
    data = bytearray(path.read_bytes())
    how = draw.choice(
        ("replace", "flip", "cut", "insert", "repeat", "column", "value", "value", "gone", "directory")
    )
    if how == "replace":
        data = bytearray(draw.choice(DATA_TEXTS))
    elif how == "flip":
        for _ in range(draw.choice((1, 20))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        data = data[: draw.randrange(len(data))]
    elif how == "insert":
        at = draw.randrange(len(data))
        data[at:at] = draw.choice(DATA_TEXTS)
    elif how == "repeat":
        data = data + data
    elif how == "column":
        first = data.split(b"\n", 1)[0]
        data = data.replace(first, first + b"," + first.split(b",")[0], 1)
    elif how == "value":
        values = re.findall(rb"[A-Za-z0-9.]+", bytes(data))
        wrong = draw.choice(
            (
                b"",
                b"null",
                b"1e999",
                b"NaN",
                b"-1",
                b"x" * 100_000,
                b"\xf0\x9f\x91\xa9",
                b"\x1b[31m",
                b"{}",
                b"[]",
                b"true",
                b"0",
            )
        )
        data = bytearray(bytes(data).replace(draw.choice(values), wrong, draw.choice((1, 1, 1000))))
    path.unlink()
    if how == "directory":
        path.mkdir()
    elif how != "gone":
        path.write_bytes(data)
    return f"data: {how}"
