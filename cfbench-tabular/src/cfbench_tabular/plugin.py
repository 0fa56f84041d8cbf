"""What cfbench-tabular registers. Data only: importing it imports neither NumPy nor scikit-learn."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

HERE = "cfbench_tabular"
NUMERIC = {"explainer": {"columns": frozenset({"numeric"})}}
ANY_COLUMNS = {"columns": frozenset({"numeric", "categorical"})}
BY_SCORES = {"classifier": {"access": frozenset({"scores"})}}
BY_GRADIENTS = {"classifier": {"access": frozenset({"scores", "gradients"})}}
CONSTRAINED = {
    "constraints": frozenset({"immutable", "ranges", "one-hot"})
}  # table 1 of paper 003: W, R, OHE
CARRIED = {"embedded": True, "licence": "CC BY 4.0"}  # by scikit-learn
LAYERED = {"access": frozenset({"scores", "gradients", "layers"})}


def _spec(kind: str, name: str, implementation: str, summary: str, **more: object) -> ComponentSpec:
    """A component of this distribution; its configuration is the ``Config`` of the same file."""
    module = f"{HERE}.{kind}s.{name.replace('-', '_')}"
    return ComponentSpec(
        id=f"tabular/{kind}/{name}",
        summary=summary,
        target=f"{module}:{implementation}",
        config=f"{module}:Config",
        **more,  # type: ignore[arg-type]
    )


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="tabular/suite/tabular",
            summary="What would have to be different for another class? Counterfactual rows of a classifier",
            target=f"{HERE}.suite:TabularSuite",
            details={"conformance": f"{HERE}.testing:checks"},
        ),
        _spec(
            "classifier",
            "mlp",
            "MLP",
            "Network with one hidden ReLU layer; trained here or loaded from a file",
            provides=LAYERED,
        ),
        _spec(
            "classifier",
            "logistic-regression",
            "LogisticRegression",
            "Linear log-odds with an L2 penalty",
            provides=LAYERED,
        ),
    ]


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return [
        _spec(
            "dataset",
            "iris",
            "Iris",
            "150 flowers, 4 measures",
            paper="Fisher 1936",
            needs=NUMERIC,
            details=CARRIED,
        ),
        _spec(
            "dataset",
            "wine",
            "Wine",
            "178 wines, 13 measures",
            paper="Forina et al. 1991",
            needs=NUMERIC,
            details=CARRIED,
        ),
        _spec(
            "dataset",
            "breast-cancer",
            "BreastCancer",
            "569 tumours, 30 measures",
            paper="Wolberg et al. 1995",
            needs=NUMERIC,
            details=CARRIED,
        ),
    ]


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        _spec(
            "explainer",
            "nearest-enemy",
            "NearestEnemy",
            "The closest training row of the other class",
            provides=ANY_COLUMNS,
            needs=BY_SCORES,
            paper="Keane & Smyth 2020",
        ),
        _spec(
            "explainer",
            "growing-spheres",
            "GrowingSpheres",
            "The nearest enemy among random points in growing shells, small changes undone",
            provides=ANY_COLUMNS,
            needs=BY_SCORES,
            paper="Laugel et al. 2018",
        ),
        _spec(
            "explainer",
            "sedc",
            "SEDC",
            "The smallest set of columns whose typical value changes the class, best first",
            provides=ANY_COLUMNS,
            needs=BY_SCORES,
            paper="Martens & Provost 2014",
        ),
        _spec(
            "explainer",
            "cadex",
            "CADEX",
            "Gradient steps towards the other class until it is reached; levels switched one at a time",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_GRADIENTS,
            paper="Moore et al. 2019",
        ),
        _spec(
            "explainer",
            "nice",
            "NICE",
            "Columns of the nearest training row of the other class, copied only as far as needed",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_SCORES,
            paper="Brughmans et al. 2023",
        ),
        _spec(
            "explainer",
            "random",
            "Random",
            "Random training values in one random column after another, until the class changes",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_SCORES,
            role="floor",
        ),
        _spec(
            "explainer",
            "exhaustive",
            "Exhaustive",
            "The fewest categories that have to change, by trying them all, with a proof",
            provides={"columns": frozenset({"categorical"}), **CONSTRAINED},
            needs=BY_SCORES,
            role="bound",
        ),
    ]


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    source = "de Oliveira & Martens 2021"
    return [
        _spec("metric", "coverage", "Coverage", "Does the class really change?", paper=source),
        _spec("metric", "sparsity", "Sparsity", "Share of encoded columns that stay", paper=source),
        _spec("metric", "l2", "L2", "Euclidean distance in standard deviations", paper=source),
        _spec(
            "metric",
            "realism",
            "Realism",
            "Could the counterfactual be a row? RUC, RMC and both",
            paper=source,
        ),
    ]
