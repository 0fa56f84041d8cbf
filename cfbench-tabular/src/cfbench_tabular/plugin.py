"""What cfbench-tabular registers. Data only: importing it imports neither NumPy nor scikit-learn."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.analysis import ANALYSES
from cfbench_tabular.datasets import DATASETS

HERE = "cfbench_tabular"
ANY_COLUMNS = {"columns": frozenset({"numeric", "categorical"})}
BY_SCORES = {"classifier": {"access": frozenset({"scores"})}}
BY_GRADIENTS = {"classifier": {"access": frozenset({"scores", "gradients"})}}
CONSTRAINED = {
    "constraints": frozenset({"immutable", "ranges", "one-hot"})
}  # table 1 of paper 003: W, R, OHE
SCORED = {"access": frozenset({"scores"})}
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
        *ANALYSES,
        _spec(
            "classifier",
            "mlp",
            "MLP",
            "Network with one hidden ReLU layer; trained here or loaded from a file",
            provides=LAYERED,
        ),
        _spec(
            "classifier",
            "study-network",
            "StudyNetwork",
            "The network that the study published for a data set; not trained; needs protocol: paper",
            provides=LAYERED,
            paper="de Oliveira & Martens 2021",
            details={"weights": "study"},
        ),
        _spec(
            "classifier",
            "logistic-regression",
            "LogisticRegression",
            "Linear log-odds with an L2 penalty",
            provides=LAYERED,
        ),
        _spec(
            "classifier",
            "random-forest",
            "RandomForest",
            "Mean of decision trees on draws of the training rows",
            provides=SCORED,
            paper="Breiman 2001",
        ),
        _spec(
            "classifier",
            "scikit-learn",
            "ScikitLearn",
            "Any estimator or pipeline of yours, or of scikit-learn, by name; ready made or trained here",
            provides=SCORED,
        ),
        _spec(
            "classifier",
            "torch",
            "Torch",
            "Any torch module of yours, with weights from a file or trained here",
            provides={"access": frozenset({"scores", "gradients"})},
        ),
        _spec(
            "classifier",
            "gradient-boosting",
            "GradientBoosting",
            "Sum of small trees, each fitted to what is left",
            provides=SCORED,
            paper="Friedman 2001",
        ),
    ]


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return list(DATASETS)


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
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_SCORES,
            paper="Laugel et al. 2018",
            version="2",  # within observed ranges
        ),
        _spec(
            "explainer",
            "sedc",
            "SEDC",
            "The smallest set of columns whose typical value changes the class, best first",
            provides={**ANY_COLUMNS, **CONSTRAINED},
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
            "dice",
            "DiCE",
            "Several at once by gradient: close to the row, unlike each other, then made sparse",
            provides={**ANY_COLUMNS, **CONSTRAINED, "answers": frozenset({"several"})},
            needs=BY_GRADIENTS,
            paper="Mothilal et al. 2020",
        ),
        _spec(
            "explainer",
            "ml-explain",
            "MLExplain",
            "Gradient descent on the probability of the other class and on the distance; the nearest step",
            provides=ANY_COLUMNS,
            needs=BY_GRADIENTS,
            paper="Afonichkin 2019",
        ),
        _spec(
            "explainer",
            "alibic",
            "ALIBIC",
            "Close, sparse, and drawn to the nearest training row of the other class, by gradient",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_GRADIENTS,
            paper="Van Looveren & Klaise 2021",
        ),
        _spec(
            "explainer",
            "alibic-nograd",
            "ALIBICNoGrad",
            "ALIBIC with numeric gradients, for any model that gives probabilities",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_SCORES,
            paper="Van Looveren & Klaise 2021",
        ),
        _spec(
            "explainer",
            "synas",
            "SynAS",
            "The cheapest one to three actions: add to a number, set a category",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_GRADIENTS,
            paper="Ramakrishnan et al. 2020",
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
        _spec(
            "explainer",
            "optimum",
            "Optimum",
            "The nearest counterfactual of a ReLU network, by mixed-integer programming, with a proof",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs={"classifier": {"access": frozenset({"scores", "layers"})}},
            role="bound",
        ),
        _spec(
            "explainer",
            "lore",
            "LORE",
            "The nearest rule of the other class in a tree for rows bred around the factual",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs=BY_SCORES,
            paper="Guidotti et al. 2019",
        ),
        _spec(
            "explainer",
            "mace",
            "MACE",
            "The nearest counterfactual by a solver of formulae and bisection, with a proof; needs [mace]",
            provides={**ANY_COLUMNS, **CONSTRAINED},
            needs={"classifier": {"access": frozenset({"scores", "layers"})}},
            paper="Karimi et al. 2020",
            details={"default": False},  # seconds for each factual, and z3 is not there for everybody
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
        _spec("metric", "madd", "MADD", "Distance in units of each column's own spread", paper=source),
        _spec(
            "metric",
            "mahalanobis",
            "Mahalanobis",
            "Distances that know how columns go together",
            paper=source,
        ),
        _spec(
            "metric",
            "plausibility",
            "Plausibility",
            "Is the counterfactual where rows are, and near those of its class?",
            paper="Breunig et al. 2000",
        ),
        _spec(
            "metric",
            "connectedness",
            "Connectedness",
            "Does a path through the data lead to a true member of the class?",
            paper="Laugel et al. 2019",
        ),
        _spec(
            "metric",
            "actionability",
            "Actionability",
            "Is what cannot change left alone, and do columns go where they may?",
            paper="Ustun et al. 2019",
        ),
        _spec(
            "metric",
            "robustness",
            "Robustness",
            "Is it still a counterfactual after small noise?",
            paper="Artelt et al. 2021",
            version="2",  # categories change too
        ),
        _spec(
            "metric",
            "retraining",
            "Retraining",
            "Is it still one for a model that was trained again?",
            paper="Upadhyay et al. 2021",
            details={"protocol": "again"},
        ),
        _spec(
            "metric",
            "stability",
            "Stability",
            "Is it the same answer when asked again, with another seed?",
            paper=source,
            details={"protocol": "again"},
        ),
        _spec(
            "metric",
            "diversity",
            "Diversity",
            "How different are the answers to one factual?",
            paper="Mothilal et al. 2020",
            details={"protocol": "answers"},
        ),
    ]
