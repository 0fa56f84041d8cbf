"""``synthetic``: interactions drawn from a rule, as many as one likes; nothing is read or downloaded.

    data: {name: synthetic, users: 200000, items: 50000, interactions: 10000000}

The rule, of users with tastes and items of which few are popular:

- every item has a taste and a popularity, every user a taste and an activity, at random. The item at place r
  of the popularity list weighs r^-exponent; tastes take turns along that list, so that each has popular items
  and unpopular ones. Activities are lognormal (sigma 1);
- an interaction is a user, by activity, and an item, by popularity: with probability ``loyalty`` among the
  items of the user's taste, else among all;
- every user and every item has at least one; beyond these, draws are repeated until there are as many
  different pairs as requested.

So popularity finds something, and who finds out the tastes finds clearly more. Equal options, equal data.
Memory and time are those of the interactions: 10 million take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/synthetic",
    summary="Generated from latent clusters and a power law of popularity, in any size; needs no file",
    target=f"{__name__}:Synthetic",
    config=f"{__name__}:Config",
    details={"licence": "generated, free to use", "embedded": True},
)

RULE = "a generated set: {clusters} tastes, item popularity by place^-{exponent:g}, loyalty {loyalty:g}, seed {seed}"


@dataclass(frozen=True, kw_only=True)
class Config:
    users: Annotated[int, Range(minimum=1), Help("how many; each has at least one interaction")] = 2_000
    items: Annotated[int, Range(minimum=1), Help("how many; each has at least one interaction")] = 1_000
    interactions: Annotated[int, Range(minimum=1), Help("how many different pairs")] = 40_000
    exponent: Annotated[
        float, Range(minimum=0), Help("the item at place r is as popular as r^-exponent; 0: all equal")
    ] = 0.8
    clusters: Annotated[int, Range(minimum=1), Help("tastes")] = 20
    loyalty: Annotated[
        float, Range(minimum=0, maximum=1), Help("share of interactions within the user's own taste")
    ] = 0.7
    seed: Annotated[int, Range(minimum=0), Help("another seed, other data of the same kind")] = 0


class Synthetic:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        """It needs no file.

        Raises:
            UserError: if there are not enough interactions for every user and item, or more tastes than items.
        """
        config = self.config
        fewest = min(config.users + config.items, config.users * config.items)
        if config.interactions < fewest:
            raise UserError(
                f"synthetic: interactions: must be at least {fewest:,}, so that every user and every item "
                f"has one, is {config.interactions:,}"
            )
        if config.clusters > config.items:
            raise UserError(
                f"synthetic: clusters: must be at most the items, {config.items:,}, is {config.clusters:,}"
            )
        return Source({}, "generated")

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        """Raises:
        UserError: if so many different pairs do not come up.
        """
        import numpy as np

        from cfbench_recsys.datasets.latent_clusters import ClusterOptions, LatentClusters, different_pairs
        from cfbench_recsys.interactions import Interactions, binary_matrix

        config = self.config
        options = {field.name: getattr(config, field.name) for field in fields(ClusterOptions)}
        clusters = LatentClusters(ClusterOptions(**options))
        keys = different_pairs(clusters, config.interactions)
        matrix = binary_matrix(keys // config.items, keys % config.items, (config.users, config.items))
        user_ids, item_ids = (np.arange(count).astype(np.str_) for count in matrix.shape)
        names = [f"item {item} of taste {taste}" for item, taste in enumerate(clusters.of_item.tolist())]
        about: dict[str, Any] = {
            "title": "Synthetic interactions",
            "because": "they took",
            "licence": "generated, free to use",
            "page": "",
            "release": "",
            "rule": RULE.format(**vars(config)),
            "expected": None,
            "differences": [],
            "duplicates": 0,
        }
        return Interactions("synthetic", matrix, user_ids, item_ids, np.array(names), about=about)
