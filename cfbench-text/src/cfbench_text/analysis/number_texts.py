"""Numbers of reproduced tables as text; a missing one is empty."""

from __future__ import annotations

import numpy as np


def count_text(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if value == round(value) else f"{value:.2f}"


def number_text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"
