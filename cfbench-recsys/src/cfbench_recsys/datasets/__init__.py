"""The data sets of the recommender suite, as specs. What each needs on disk its own file says: ``FILES``."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

_HERE = "cfbench_recsys.datasets"

DATASETS: tuple[ComponentSpec, ...] = (
    ComponentSpec(
        id="recsys/dataset/debian-python",
        summary="Debian packages and the Python libraries they depend on; embedded, names are readable",
        target=f"{_HERE}.debian_python:DebianPython",
        config=f"{_HERE}.debian_python:Config",
        details={
            "files": f"{_HERE}.debian_python:FILES",
            "licence": "package metadata: facts, free to ship",
            "embedded": True,
            "counts": (1_685, 643, 10_604),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/debian-all",
        summary="Debian packages and all they depend on; built from Debian's package index",
        target=f"{_HERE}.debian_all:DebianAll",
        config=f"{_HERE}.debian_all:Config",
        details={
            "files": f"{_HERE}.debian_all:FILES",
            "licence": "package metadata: facts, free to ship",
            "embedded": False,
            "counts": (24_047, 9_404, 172_112),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/amazon-fashion",
        summary="Amazon Reviews 2023, fashion: ratings above 3, users and items with at least 3",
        target=f"{_HERE}.amazon_fashion:AmazonFashion",
        config=f"{_HERE}.amazon_fashion:Config",
        paper="Hou et al. 2024",
        details={
            "files": f"{_HERE}.amazon_fashion:FILES",
            "licence": "Amazon Reviews 2023, for research, no redistribution",
            "embedded": False,
            "counts": (1_275, 1_374, 6_973),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/ml-1m",
        summary="MovieLens 1M: ratings of 4 and 5, users and items with at least 2",
        target=f"{_HERE}.ml_1m:MovieLens1M",
        config=f"{_HERE}.ml_1m:Config",
        paper="Harper & Konstan 2015",
        details={
            "files": f"{_HERE}.ml_1m:FILES",
            "licence": "GroupLens licence, no redistribution",
            "embedded": False,
            "counts": (6_037, 3_381, 575_128),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/ml-100k",
        summary="MovieLens 100K: ratings of 4 and 5, users and items with at least 2",
        target=f"{_HERE}.ml_100k:MovieLens100K",
        config=f"{_HERE}.ml_100k:Config",
        paper="Harper & Konstan 2015",
        details={
            "files": f"{_HERE}.ml_100k:FILES",
            "licence": "GroupLens licence, no redistribution",
            "embedded": False,
            "counts": (942, 1_283, 55_211),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/ml-20m",
        summary="MovieLens 20M: ratings of 4 and more, users and items with at least 2",
        target=f"{_HERE}.ml_20m:MovieLens20M",
        config=f"{_HERE}.ml_20m:Config",
        paper="Harper & Konstan 2015",
        details={
            "files": f"{_HERE}.ml_20m:FILES",
            "licence": "GroupLens licence, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="recsys/dataset/yahoo-music",
        summary="Yahoo! Music: ratings above 70 of 100, users and items with at least 2; from a file of yours",
        target=f"{_HERE}.yahoo_music:YahooMusic",
        config=f"{_HERE}.yahoo_music:Config",
        paper="Barkan et al. 2024",
        details={
            "files": f"{_HERE}.yahoo_music:FILES",
            "licence": "Yahoo Webscope, on request, no redistribution",
            "embedded": False,
            "counts": (13_797, 4_604, 365_750),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/yahoo-r3",
        summary="Yahoo! R3: ratings of 4 and 5, users and items with at least 2; from a file of yours",
        target=f"{_HERE}.yahoo_r3:YahooR3",
        config=f"{_HERE}.yahoo_r3:Config",
        details={
            "files": f"{_HERE}.yahoo_r3:FILES",
            "licence": "Yahoo Webscope, on request, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="recsys/dataset/pinterest",
        summary="Pinterest: pins of a sample of users; from NCF's files, or a sample of yours",
        target=f"{_HERE}.pinterest:Pinterest",
        config=f"{_HERE}.pinterest:Config",
        paper="He et al. 2017",
        details={
            "files": f"{_HERE}.pinterest:FILES",
            "licence": "for research, as published with NCF",
            "embedded": False,
            "counts": (19_155, 9_362, 486_744),
        },
    ),
    ComponentSpec(
        id="recsys/dataset/synthetic",
        summary="Drawn from a rule: tastes and a power law of popularity, in any size; needs no file",
        target=f"{_HERE}.synthetic:Synthetic",
        config=f"{_HERE}.synthetic:Config",
        details={"licence": "generated, free to use", "embedded": True},
    ),
    ComponentSpec(
        id="recsys/dataset/file",
        summary="A file of yours: CSV, TSV, Parquet, JSON lines or .inter; a user and an item in each row",
        target=f"{_HERE}.file:File",
        config=f"{_HERE}.file:Config",
        details={
            "licence": "yours",
            "embedded": False,
            "how": "named in the configuration: path: ratings.csv",
        },
    ),
)
"""What ``plugin.py`` registers. ``counts``: users, items, interactions as published (or as first counted)."""
