"""The data sets of the tabular suite, as specs. Importing it imports neither NumPy nor scikit-learn."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

_HERE = "cfbench_tabular.datasets"
_CARRIED = {"embedded": True, "licence": "CC BY 4.0"}
"""Of sets that scikit-learn carries, or that are made from their rules: nothing to find or to fetch."""


def _embedded(name: str, implementation: str, summary: str, paper: str, columns: str) -> ComponentSpec:
    module = f"{_HERE}.{name.replace('-', '_')}"
    return ComponentSpec(
        id=f"tabular/dataset/{name}",
        summary=summary,
        target=f"{module}:{implementation}",
        config=f"{module}:Config",
        paper=paper,
        needs={"explainer": {"columns": frozenset(columns.split())}},
        details=_CARRIED,
    )


DATASETS: tuple[ComponentSpec, ...] = (
    _embedded("iris", "Iris", "150 flowers, 4 measures", "Fisher 1936", "numeric"),
    _embedded("wine", "Wine", "178 wines, 13 measures", "Forina et al. 1991", "numeric"),
    _embedded("breast-cancer", "BreastCancer", "569 tumours, 30 measures", "Wolberg et al. 1995", "numeric"),
    _embedded(
        "balance-scale",
        "BalanceScale",
        "Which side of a scale tips? 625 settings, from the rule",
        "Siegler 1976",
        "categorical",
    ),
    _embedded(
        "tic-tac-toe",
        "TicTacToe",
        "Has x won? All 958 final boards, from the rules",
        "Aha 1991",
        "categorical",
    ),
    _embedded(
        "car-evaluation",
        "CarEvaluation",
        "Would one buy it? 1,728 cars, from the decision model",
        "Bohanec & Rajkovic 1988",
        "categorical",
    ),
    _embedded(
        "nursery",
        "Nursery",
        "How to rank it? 12,960 applications to a nursery, from the decision model",
        "Olave et al. 1989",
        "categorical",
    ),
    _embedded(
        "chess",
        "Chess",
        "King and rook against king: won or drawn? All 28,056 positions, computed",
        "Bain & Hoff 1994",
        "categorical",
    ),
)
"""What ``plugin.py`` registers."""
