"""A local chat model: any decoder that ``transformers`` loads, GGUF files included, with greedy decoding.

Prompts use the model's own chat template; for a model without a template (a base model) the messages are joined as
plain paragraphs. A prompt that exceeds the model's context is a failure of that text; it is never truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cfbench_core.devices.batches import halved
from cfbench_core.errors import UserError
from cfbench_text.models.chat_types import ChatSource, Completion, OptionProbabilities, Prompt
from cfbench_text.models.loading import batches, load, padded

NO_ROOM = "the text exceeds the context of the model"


class Causal:
    def __init__(self, source: ChatSource) -> None:
        self._loaded = load("AutoModelForCausalLM", source)
        self._batch = source.batch

    def write(self, prompts: Sequence[Prompt], tokens: int) -> Iterator[tuple[int, Completion]]:
        fitting = yield from self._fitting(prompts, tokens, Completion(failure=NO_ROOM, final=True))

        def continued(some: Sequence[int]) -> list[Completion]:
            return self._continued([fitting[place][1] for place in some], tokens)

        for some, found in halved(batches([len(ids) for _, ids in fitting], self._batch), continued):
            for place, declared in zip(some, found, strict=True):
                yield fitting[place][0], declared

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str]
    ) -> Iterator[tuple[int, OptionProbabilities]]:
        import torch

        first, second = (self._tokens_of(option) for option in options)
        fitting = yield from self._fitting(prompts, 1, OptionProbabilities(None, failure=NO_ROOM, final=True))

        def next_tokens(some: Sequence[int]) -> np.ndarray[Any, Any]:
            given = padded(self._loaded, [fitting[place][1] for place in some], left=True)
            with torch.inference_mode():
                last = self._loaded.model(**given, **_positions(given), logits_to_keep=1).logits[:, -1]
                found: np.ndarray[Any, Any] = torch.softmax(last.double(), dim=-1).cpu().numpy()
                return found

        for some, probabilities in halved(
            batches([len(ids) for _, ids in fitting], self._batch), next_tokens
        ):
            for place, of_row in zip(some, probabilities, strict=True):
                one, other = float(of_row[first].sum()), float(of_row[second].sum())
                mass = one + other
                yield fitting[place][0], OptionProbabilities(one / mass if mass else None, mass)

    def _fitting(self, prompts: Sequence[Prompt], room: int, failure: Any) -> Any:
        """The (place, token numbers) of prompts that fit; yields a failure for each of the others."""
        found = []
        for place, prompt in enumerate(prompts):
            ids = self._ids(prompt)
            if len(ids) + room > self._loaded.limit:
                yield place, failure
            else:
                found.append((place, ids))
        return found

    def _ids(self, prompt: Prompt) -> list[int]:
        tokenizer = self._loaded.tokenizer
        if tokenizer.chat_template:
            text = tokenizer.apply_chat_template(prompt.messages, tokenize=False, add_generation_prompt=True)
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])
        return list(tokenizer(f"{prompt.system}\n\n{prompt.user}\n\n")["input_ids"])

    def _continued(self, rows: Sequence[Sequence[int]], tokens: int) -> list[Completion]:
        """The completion of each row. Decoding is greedy regardless of the model's own settings."""
        import torch
        from transformers import GenerationConfig

        tokenizer, model = self._loaded.tokenizer, self._loaded.model
        ends = _ends(tokenizer, model)
        settings = GenerationConfig(
            max_new_tokens=tokens, do_sample=False, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id
        )
        given = padded(self._loaded, rows, left=True)
        with torch.inference_mode():
            written = model.generate(**given, generation_config=settings)[:, given["input_ids"].shape[1] :]
        found = []
        for ids in written.tolist():
            stops = [place for place, token in enumerate(ids) if token in ends]
            generated = ids[: stops[0]] if stops else ids
            found.append(Completion(tokenizer.decode(generated, skip_special_tokens=True), cut=not stops))
        return found

    def _tokens_of(self, option: str) -> np.ndarray[Any, Any]:
        """The tokens that are the option, with or without a blank before it."""
        tokenizer = self._loaded.tokenizer
        found = {
            ids[0]
            for text in (option, f" {option}")
            if len(ids := tokenizer(text, add_special_tokens=False)["input_ids"]) == 1
            and ids[0] != tokenizer.unk_token_id
        }
        if not found:
            raise UserError(
                f"the model has no token {option!r}, with which it would answer: choose another model"
            )
        return np.array(sorted(found))


def _positions(given: Any) -> dict[str, Any]:
    """Places counted from the first token of each row, not from the padding before it."""
    return {"position_ids": (given["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)}


def _ends(tokenizer: Any, model: Any) -> list[int]:
    """The tokens after which there is nothing more."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    listed = declared if isinstance(declared, list) else [declared]
    return sorted({token for token in (*listed, tokenizer.eos_token_id) if token is not None})
