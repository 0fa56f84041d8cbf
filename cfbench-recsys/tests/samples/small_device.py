"""A recommender that is trained on a device with memory for a few users at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from cfbench_recsys.recommenders import mf


@dataclass(frozen=True, kw_only=True)
class Config(mf.Config):
    fits: int = 100


class SmallDevice(mf.MF):
    def training(self, interactions: Any, generator: Any) -> Any:
        training, most = super().training(interactions, generator), self.config.fits
        loss_of = training.loss

        def loss(profiles: Any) -> Any:
            whole = loss_of(profiles)

            def limited(part: slice) -> Any:
                if part.stop - part.start > most:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
                return whole(part)

            return limited

        training.loss = loss
        return training
