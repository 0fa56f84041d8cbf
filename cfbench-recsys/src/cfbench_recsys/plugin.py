"""What cfbench-recsys registers. Data only: importing it imports neither NumPy nor torch."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis import ANALYSES
from cfbench_recsys.datasets import DATASETS
from cfbench_recsys.metrics import METRICS

PROFILE = {"scope": frozenset({"user-vector"})}
GRAPH = {"scope": frozenset({"user-only", "indirect", "k-hop", "full"})}

CHECKPOINTS = {"checkpoints": frozenset({"yes"})}

AXES = {
    "format": ("implicit", "explicit"),
    "level": ("item", "list"),
    "scope": ("user-vector", "user-only", "indirect", "k-hop", "full"),
    "edit": ("remove", "add"),
    "access": ("scores", "weights", "gradients", "embeddings", "training"),
    "checkpoints": ("yes",),
    "pretraining": ("yes",),
}
"""The capability axes, each with its values in the order in which people read them."""


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="recsys/suite/recsys",
            summary="Why was this recommended? Interactions to remove or add, for one item or a whole list",
            target="cfbench_recsys.suite:RecsysSuite",
            details={"conformance": "cfbench_recsys.testing:checks", "axes": AXES},
        ),
        *ANALYSES,
    ]


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return list(DATASETS)


@hookimpl
def cfbench_recommenders() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="recsys/recommender/mf",
            summary="Two-tower matrix factorisation; its logit is linear in the profile",
            target="cfbench_recsys.recommenders.mf:MF",
            config="cfbench_recsys.recommenders.mf:Config",
            presets="cfbench_recsys:presets/mf.yaml",
            provides={
                **PROFILE,
                **CHECKPOINTS,
                "access": frozenset({"scores", "weights", "gradients", "embeddings"}),
            },
            paper="Koren et al. 2009",
        ),
        ComponentSpec(
            id="recsys/recommender/diffrec",
            summary="Denoising diffusion over the profile; deterministic when it recommends",
            target="cfbench_recsys.recommenders.diffrec:DiffRec",
            config="cfbench_recsys.recommenders.diffrec:Config",
            presets="cfbench_recsys:presets/diffrec.yaml",
            provides={**PROFILE, **CHECKPOINTS, "access": frozenset({"scores", "gradients"})},
            paper="Wang et al. 2023",
        ),
        ComponentSpec(
            id="recsys/recommender/ease",
            summary="Linear autoencoder in closed form; strong, and its counterfactuals are exactly known",
            target="cfbench_recsys.recommenders.ease:EASE",
            config="cfbench_recsys.recommenders.ease:Config",
            presets="cfbench_recsys:presets/ease.yaml",
            provides={**PROFILE, "access": frozenset({"scores", "weights", "gradients"})},
            paper="Steck 2019",
        ),
        ComponentSpec(
            id="recsys/recommender/item-knn",
            summary="Items like those of the profile; sparse, and its counterfactuals are exactly known",
            target="cfbench_recsys.recommenders.item_knn:ItemKNN",
            config="cfbench_recsys.recommenders.item_knn:Config",
            presets="cfbench_recsys:presets/item-knn.yaml",
            provides={**PROFILE, "access": frozenset({"scores", "weights", "gradients"})},
            paper="Sarwar et al. 2001",
        ),
        ComponentSpec(
            id="recsys/recommender/popularity",
            summary="The same for everybody: what most have. No profile moves it",
            target="cfbench_recsys.recommenders.popularity:Popularity",
            config="cfbench_recsys.recommenders.popularity:Config",
            provides={**PROFILE, "access": frozenset({"scores"})},
            role="floor",
        ),
        ComponentSpec(
            id="recsys/recommender/ncf",
            summary="Neural matrix factorisation: a product of embeddings and a perceptron (NeuMF)",
            target="cfbench_recsys.recommenders.ncf:NCF",
            config="cfbench_recsys.recommenders.ncf:Config",
            presets="cfbench_recsys:presets/ncf.yaml",
            provides={**PROFILE, **CHECKPOINTS, "access": frozenset({"scores", "gradients"})},
            paper="He et al. 2017",
        ),
        ComponentSpec(
            id="recsys/recommender/vae",
            summary="Variational autoencoder of profiles with a multinomial likelihood (Mult-VAE)",
            target="cfbench_recsys.recommenders.vae:VAE",
            config="cfbench_recsys.recommenders.vae:Config",
            presets="cfbench_recsys:presets/vae.yaml",
            provides={**PROFILE, **CHECKPOINTS, "access": frozenset({"scores", "gradients", "embeddings"})},
            paper="Liang et al. 2018",
        ),
        ComponentSpec(
            id="recsys/recommender/lightgcn",
            summary="Light graph convolution over the user-item graph",
            target="cfbench_recsys.recommenders.lightgcn:LightGCN",
            config="cfbench_recsys.recommenders.lightgcn:Config",
            presets="cfbench_recsys:presets/lightgcn.yaml",
            provides={**GRAPH, **CHECKPOINTS, "access": frozenset({"scores", "gradients", "embeddings"})},
            paper="He et al. 2020",
            version="2",  # sums in another order
        ),
        ComponentSpec(
            id="recsys/recommender/simgcl",
            summary="LightGCN that must withstand noise: contrasts two noisy views of the graph",
            target="cfbench_recsys.recommenders.simgcl:SimGCL",
            config="cfbench_recsys.recommenders.simgcl:Config",
            presets="cfbench_recsys:presets/simgcl.yaml",
            provides={**GRAPH, **CHECKPOINTS, "access": frozenset({"scores", "gradients", "embeddings"})},
            paper="Yu et al. 2022",
        ),
        ComponentSpec(
            id="recsys/recommender/gformer",
            summary="Graph transformer: attends over the edges, learns to find those it was not shown",
            target="cfbench_recsys.recommenders.gformer:GFormer",
            config="cfbench_recsys.recommenders.gformer:Config",
            presets="cfbench_recsys:presets/gformer.yaml",
            provides={**GRAPH, **CHECKPOINTS, "access": frozenset({"scores", "gradients", "embeddings"})},
            paper="Li et al. 2023",
        ),
    ]


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    return list(METRICS)
