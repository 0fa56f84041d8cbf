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


def _published(name: str, implementation: str, summary: str, paper: str, columns: str) -> ComponentSpec:
    return ComponentSpec(
        id=f"tabular/dataset/{name}",
        summary=summary,
        target=f"{_HERE}.published:{implementation}",
        config=f"{_HERE}.published:Config",
        paper=paper,
        needs={"explainer": {"columns": frozenset(columns.split())}},
        details={
            "files": f"{_HERE}.published:{implementation}.files",
            "licence": "CC BY 4.0",
            "embedded": False,
        },
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
    _published(
        "soybean-small",
        "SoybeanSmall",
        "Which disease has a soybean plant? 47 plants, 35 signs",
        "Michalski & Chilausky 1980",
        "categorical",
    ),
    _published(
        "lymphography",
        "Lymphography",
        "What do X-ray pictures of lymph nodes show? 148 patients, 18 findings",
        "Zwitter & Soklic 1988",
        "categorical",
    ),
    _published(
        "hayes-roth",
        "HayesRoth",
        "To which club does somebody belong? 132 made-up people, 4 traits",
        "Hayes-Roth & Hayes-Roth 1977",
        "categorical",
    ),
    _published(
        "ecoli",
        "Ecoli",
        "Where does a protein stay? 336 proteins, 7 scores",
        "Horton & Nakai 1996",
        "numeric",
    ),
    _published(
        "cmsc",
        "CMSC",
        "Does a climate model's run finish? 540 runs, 18 settings",
        "Lucas et al. 2013",
        "numeric",
    ),
    _published(
        "bcw",
        "BCW",
        "Does breast cancer come back? 198 patients, 32 measures",
        "Wolberg et al. 1995",
        "numeric",
    ),
    _published(
        "pbc",
        "PBC",
        "What is a block on a printed page? 5,473 blocks, 10 measures",
        "Malerba et al. 1996",
        "numeric",
    ),
    _published(
        "isolet",
        "ISOLET",
        "Which letter was spoken? 7,797 recordings, 617 features",
        "Cole & Fanty 1990",
        "numeric",
    ),
    _published(
        "magic", "Magic", "Gamma ray or hadron? 19,020 showers of light, 10 measures", "Bock 2004", "numeric"
    ),
    _published(
        "sdd",
        "SDD",
        "Which fault has a motor? 58,509 measurements, 48 features",
        "Paschke et al. 2013",
        "numeric",
    ),
    _published(
        "statlog-german-credit",
        "StatlogGermanCredit",
        "Good or bad credit risk? 1,000 applicants, 20 columns",
        "Hofmann 1994",
        "numeric categorical",
    ),
    _published(
        "student-performance",
        "StudentPerformance",
        "A final mark of at least 12? 649 pupils, 30 columns",
        "Cortez & Silva 2008",
        "numeric categorical",
    ),
    _published(
        "internet-advertisements",
        "InternetAdvertisements",
        "Is a picture an advertisement? 2,359 pictures, 1,558 columns",
        "Kushmerick 1999",
        "numeric categorical",
    ),
    _published(
        "default-of-credit-card-clients",
        "DefaultOfCreditCardClients",
        "Will a client not pay next month? 30,000 clients, 23 columns",
        "Yeh & Lien 2009",
        "numeric categorical",
    ),
    _published(
        "adult",
        "Adult",
        "An income above 50,000 dollars? 32,561 people, 14 columns",
        "Kohavi 1996",
        "numeric categorical",
    ),
    ComponentSpec(
        id="tabular/dataset/csv",
        summary="A table of yours with a short schema; 'cfbench init --csv FILE' drafts it",
        target=f"{_HERE}.csv:Csv",
        config=f"{_HERE}.csv:Config",
        details={
            "licence": "yours",
            "embedded": False,
            "how": "named in the configuration: file: patients.csv",
        },
    ),
)
"""What ``plugin.py`` registers."""
