"""``cer``: PETER with a second rating that is predicted from the explanation, so that both agree.

Raczyński, Lango, Stefanowski, "The problem of coherence in natural language explanations of recommendations", ECAI
2023. The model is that of ``peter``. With H_1..H_T the hidden states of the text,

    rating of the text = mean + MLP'(mean of H_1..H_T),

and the loss also contains its squared difference from the predicted rating, times ``coherence_weight``. Padding is
excluded from the mean, so a row does not depend on the longest row of its batch. Departs from the paper as ``peter``
does.

``variant: paper`` is the authors' code (github JMRaczynski/PETER, ``--additional_recommender``), with the settings of
``peter_paper.py``: the largest value of each component over all positions of the text, which is padded to the full length,
instead of the mean of its words, and the same weight (``paper.rating_weight``) for both squared errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.generators.batches import Batch
from cfbench_text.generators.language import BEGIN, PAD
from cfbench_text.generators.neural import Encoding
from cfbench_text.generators.peter import PAIR, PETER
from cfbench_text.generators.peter import Config as PeterConfig

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="text/generator/cer",
    summary="PETER with a rating that is also predicted from the explanation",
    target=f"{__name__}:CER",
    config=f"{__name__}:Config",
    papers=("raczynski2023cer",),
    details={"default": False},
)


@dataclass(frozen=True, kw_only=True)
class Config(PeterConfig):
    coherence_weight: Annotated[float, Range(minimum=0), Help("of the difference between both ratings")] = 0.1


class CER(PETER):
    config: Config

    def layers(self, encoding: Encoding) -> Any:
        from torch import nn

        network, d = super().layers(encoding), self.options.dimensions
        network["rating of text"] = nn.Sequential(nn.Linear(d, d), nn.Sigmoid(), nn.Linear(d, 1))
        return network

    def hidden_of(self, batch: Batch) -> Tensor:
        """As published, of all positions of a text of the full length; none attends to padding."""
        if not self.published:
            return super().hidden_of(batch)
        from torch.nn.functional import pad

        words = pad(batch.targets, (1, self.config.length - batch.targets.shape[1]), value=PAD)
        words[:, 0] = BEGIN
        return self.hidden(batch.users, batch.items, words, unseen=words == PAD)

    def rating_of_text(self, hidden: Tensor, batch: Batch) -> Tensor:
        """(B,) the rating that the explanation speaks of, from the hidden states (B, 2 + T, d) of all positions."""
        assert self.encoding is not None
        if self.published:
            largest = hidden[:, PAIR:].amax(dim=1)
            published: Tensor = self.network["rating of text"](largest)[:, 0]
            return published
        there = (batch.targets != PAD)[:, :, None]
        mean = (hidden[:, PAIR:] * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
        found: Tensor = self.network["rating of text"](mean)[:, 0]
        return self.encoding.rating + found

    def further_loss(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Rows without a text take no part."""
        has_text = (batch.targets != PAD).any(dim=1)
        difference = (self.rating_of_text(hidden, batch) - self._rating(hidden)) ** 2
        found: Tensor = (difference * has_text).sum() / has_text.sum().clamp(min=1)
        return found

    def further_weight(self) -> float:
        return self.options.rating_weight if self.published else self.config.coherence_weight
