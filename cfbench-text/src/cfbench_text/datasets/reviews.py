"""``reviews``: your own reviews, JSON lines or CSV, gzipped or not.

    data: {name: reviews, path: my_reviews.jsonl, domain: my_topics.yaml}

With ``explained: true`` every row is a test row whose text is the evidence. Use it to score external texts against
references that come with them (``cfbench evaluate``). Equal rows count once there: a reference may stand next to the text
of each generator.

A user, an item and a text are required; rating and time are optional. Columns are recognised by their usual names
(among them those of Amazon Reviews 2014 and 2023), or named by options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, Source
from cfbench_core.specs import ComponentSpec
from cfbench_core.user_files import user_files
from cfbench_text.domains import TOPICS, with_topics

if TYPE_CHECKING:
    from cfbench_text.reviews import Reviews

SPEC = ComponentSpec(
    id="text/dataset/reviews",
    summary="Your own reviews: JSON lines or CSV, with topics as YAML",
    target=f"{__name__}:ReviewsFile",
    config=f"{__name__}:Config",
    details={"licence": "", "embedded": False},
)


PATH = "path"


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str, InputFile(), Help("JSON lines or CSV, gzipped or not")]
    domain: Annotated[str, Help("its topics: the name of a domain, or the path of a YAML file")]
    user: Annotated[str | None, Help("column of the user; none: by its usual names")] = None
    item: Annotated[str | None, Help("column of the item; none: by its usual names")] = None
    text: Annotated[str | None, Help("column of the review; none: by its usual names")] = None
    rating: Annotated[str | None, Help("column of the rating; none: by its usual names")] = None
    time: Annotated[str | None, Help("column of the time in seconds; none: by its usual names")] = None
    explained: Annotated[
        bool, Help("every row is a test row: for external texts, with 'text' as the reference")
    ] = False


class ReviewsFile:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return with_topics(user_files({PATH: self.config.path}), self.config.domain)

    def load(self, source: Source | Mapping[str, Any]) -> Reviews:
        from cfbench_text.reading import read_reviews

        paths = Source.of(source).paths
        path, domain = paths[PATH], str(paths.get(TOPICS, self.config.domain))
        columns = {name: getattr(self.config, name) for name in ("user", "item", "text", "rating", "time")}
        found = read_reviews(path, path.name.partition(".")[0], domain, columns)
        return replace(found, explained=self.config.explained)
