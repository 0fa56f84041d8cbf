"""Three explainers: a method of the literature and two baselines."""

from typing import Any

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_images.contracts import Images

SPECS = (
    ComponentSpec(
        id="images/explainer/nearest-unlike",
        summary="The nearest training image of another class",
        target=f"{__name__}:NearestUnlike",
        role="baseline",
    ),
    ComponentSpec(
        id="images/explainer/patch-swap",
        summary="Greedy replacement of patches by those of the nearest unlike image",
        target=f"{__name__}:PatchSwap",
        papers=("goyal2019counterfactual",),
    ),
    ComponentSpec(
        id="images/explainer/random-pixels",
        summary="Random pixels until the class changes",
        target=f"{__name__}:RandomPixels",
        role="baseline",
    ),
)


class NearestUnlike:
    def __init__(self, config: None = None) -> None: ...

    def counterfactuals(self, model: Any, images: Any, data: Images, generator: Any) -> Any:
        training = data.pixels[~data.test]
        classes, own = (model.predict_proba(some).argmax(axis=1) for some in (training, images))
        distance = ((images[:, None] - training) ** 2).sum(axis=2)
        return training[np.where(classes == own[:, None], np.inf, distance).argmin(axis=1)]


class PatchSwap:
    """Swaps one 2 x 2 patch after the other, each time the one that lowers the probability of the class most.

    After Goyal et al. (2019), on pixels in place of their convolutional features.
    """

    def __init__(self, config: None) -> None: ...

    def counterfactuals(self, model: Any, images: Any, data: Images, generator: Any) -> Any:
        targets, answers = NearestUnlike().counterfactuals(model, images, data, generator), images.copy()
        row, column = np.divmod(np.arange(images.shape[1]), int(np.sqrt(images.shape[1])))
        patch = row // 2 * 100 + column // 2
        patches = patch == np.unique(patch)[:, None]
        for image, (target, label) in enumerate(
            zip(targets, model.predict_proba(images).argmax(axis=1), strict=True)
        ):
            while model.predict_proba(answers[image][None]).argmax() == label:
                trials = np.where(patches, target, answers[image])
                trials = trials[(trials != answers[image]).any(axis=1)]
                answers[image] = trials[model.predict_proba(trials)[:, label].argmin()]
        return answers


class RandomPixels:
    def __init__(self, config: None) -> None: ...

    def counterfactuals(self, model: Any, images: Any, data: Images, generator: Any) -> Any:
        answers = np.full(images.shape, np.nan)
        for image, label in enumerate(model.predict_proba(images).argmax(axis=1)):
            stream, pixels = generator(image), images.shape[1]
            place = np.argsort(stream.permutation(pixels))
            trials = np.where(place <= np.arange(pixels)[:, None], stream.random(pixels), images[image])
            changed = model.predict_proba(trials).argmax(axis=1) != label
            if changed.any():
                answers[image] = trials[changed.argmax()]
        return answers
