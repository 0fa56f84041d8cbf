"""Labels of cells as people read them, in the words of their suite."""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.plan import LabelFormat


def label_texts(labels: Mapping[str, str | int], formats: Mapping[str, LabelFormat]) -> list[str]:
    """["debian-python", "mf", "item level", "top 5", "implicit"].

    A suite's layout says how the values of a label read: ``{"k": "top {}", "edit": {"remove": "", "add":
    "removals or additions"}}``; an empty text leaves the label out, and ``"*"`` is the text of all other values. Other
    words stand for themselves, other numbers have their name before them.
    """
    texts = [_text(name, value, formats.get(name)) for name, value in labels.items()]
    return [text for text in texts if text]


def _text(name: str, value: str | int, form: LabelFormat | None) -> str:
    if isinstance(form, str):
        return form.format(value)
    if form is not None and (str(value) in form or "*" in form):
        return form.get(str(value), form.get("*", "")).format(value)
    return f"{name} = {value}" if isinstance(value, int) else str(value)
