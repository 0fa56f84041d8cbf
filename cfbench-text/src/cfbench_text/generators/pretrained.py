"""What generators that use a pretrained language model share: its tokens as word numbers.

Token k of the model has the number SPECIAL + k, after the four special numbers of ``language.py``. END stands for every
token with which the model ends a text: its logit is the log-sum-exp of theirs. These tokens are removed from texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cfbench_text.generators.language import END, SPECIAL, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

State = tuple[tuple["Tensor", "Tensor"], ...]
"""Keys and values of each layer, the rows first."""


class Tokens(Vocabulary):
    """The tokens of a pretrained model."""

    tokenizer: Any
    ends: tuple[int, ...]
    """Tokens that end a text; the first is the tokenizer's own."""

    def __init__(self, tokenizer: Any, ends: Sequence[int] = ()) -> None:
        super().__init__(())
        object.__setattr__(self, "tokenizer", tokenizer)
        object.__setattr__(self, "ends", tuple(dict.fromkeys((int(tokenizer.eos_token_id), *ends))))

    def __len__(self) -> int:
        return SPECIAL + len(self.tokenizer)

    def tokens(self, text: str) -> list[int]:
        """Of a text with runs of blanks as one, without any that ends a text."""
        plain = " ".join(text.split())
        found = self.tokenizer(plain, add_special_tokens=False)["input_ids"] if plain else []
        return [token for token in found if token not in self.ends]

    def encode(self, text: str, most: int) -> list[int]:
        numbers = [SPECIAL + token for token in self.tokens(text)]
        return [*numbers[:most], END] if numbers else []

    def decode(self, numbers: Sequence[int]) -> str:
        end = numbers.index(END) if END in numbers else len(numbers)
        tokens = [number - SPECIAL for number in numbers[:end]]
        text = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return " ".join(str(text).split())


def embedded(model: Any, numbers: Tensor, begin: int) -> Tensor:
    """The model's embeddings of tokens; BEGIN, and whatever is no token, as the token ``begin``."""
    found: Tensor = model.get_input_embeddings()((numbers - SPECIAL).where(numbers >= SPECIAL, begin))
    return found


def output(logits: Tensor, ends: Sequence[int]) -> Tensor:
    """(..., SPECIAL + V) logits of the numbers, from those of the tokens: the ends are END and nothing else."""
    import torch

    places = torch.tensor(ends, device=logits.device)
    specials = torch.full((*logits.shape[:-1], SPECIAL), -torch.inf, dtype=logits.dtype, device=logits.device)
    specials[..., END] = logits[..., places].logsumexp(dim=-1)
    return torch.cat([specials, logits.index_fill(-1, places, -torch.inf)], dim=-1)


def cache_state(cache: Any) -> State:
    """Keys and values of a cache of ``transformers``."""
    return tuple((layer.keys, layer.values) for layer in cache.layers)
