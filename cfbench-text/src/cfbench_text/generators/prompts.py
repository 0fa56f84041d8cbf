"""The prompt of ``xrec`` as tokens of a language model: instructions, the positions of two vectors, two profiles.

The text of the instructions is split at the positions of vectors and profiles and tokenized once; the last token is
the same in all prompts. Special tokens are removed from profiles, because a reviewer can write anything.

If a prompt leaves too little room for the response, sentences are removed from the end of the longer profile, and the
prompt counts them. Nothing else is truncated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError
from cfbench_text.generators.pretrained import Tokens
from cfbench_text.generators.profiles import NoProfiles, Profiles, Sentences
from cfbench_text.triplets import BETWEEN, FIRST, LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, ITEM = "<USER_EMBED>", "<ITEM_EMBED>"
OF_USER, OF_ITEM = "<USER_PROFILE>", "<ITEM_PROFILE>"
UNKNOWN = "nothing is known."

TASK = "Explain why a user would like or dislike a product. Products: {domain}.\n\nUser: " + USER
TASK += "\nProduct: " + ITEM + "\n"
WITH_PROFILES = (
    f"What the user said of other products: {OF_USER}\nWhat others said of this product: {OF_ITEM}\n"
)
LAST = (
    f'Write the explanation in the third person, in this form: "{FIRST["positive"]}...{BETWEEN}....'
    f' {LATER["negative"]}...{BETWEEN}.... {LATER["neutral"]}...." Leave out a sentence for which there is no reason.'
)
"""The form of the suite's paragraphs, which the other generators learn from the training texts."""


@dataclass(frozen=True)
class Prompt:
    """``tokens[user]`` and ``tokens[item]`` are placeholders for the vectors. ``lost``: number of removed sentences."""

    tokens: tuple[int, ...]
    user: int
    item: int
    lost: int


class Prompts:
    """The prompt of each user and item.

    Args:
        domain: what the products are.
        room: how many tokens a prompt may have.
    """

    def __init__(self, tokens: Tokens, domain: str, profiles: Profiles, room: int) -> None:
        self._tokens, self._profiles, self._room = tokens, profiles, room
        self._parts = list(_parts(tokens.tokenizer, domain, not isinstance(profiles, NoProfiles)))
        self._special = _special(tokens.tokenizer)
        self._made: dict[tuple[str, str], Prompt] = {}
        shortest = self._filled((), ())
        if len(shortest.tokens) > room:
            raise UserError(
                f"xrec: the prompt has {len(shortest.tokens)} tokens without any profile, and the model leaves"
                f" {room} for it: a smaller length, or a model that reads more"
            )
        self.last = shortest.tokens[-1]

    def of(self, user: str, item: str) -> Prompt:
        if (user, item) not in self._made:
            self._made[user, item] = self._fitting(*self._profiles.of(user, item))
        return self._made[user, item]

    def _fitting(self, of_user: Sentences, of_item: Sentences) -> Prompt:
        lost = 0
        while True:
            found = self._filled(of_user, of_item, lost)
            if len(found.tokens) <= self._room:
                return found
            lost += 1
            if len(" ".join(of_user)) > len(" ".join(of_item)):
                of_user = of_user[:-1]
            else:
                of_item = of_item[:-1]

    def _filled(self, of_user: Sentences, of_item: Sentences, lost: int = 0) -> Prompt:
        profiles = {OF_USER: of_user, OF_ITEM: of_item}
        tokens: list[int] = []
        places: dict[str, int] = {}
        for part in self._parts:
            if isinstance(part, list):
                tokens += part
            elif part in profiles:
                tokens += self._tokens_of(" ".join(profiles[part]) or UNKNOWN)
            else:
                places[part] = len(tokens)
                tokens.append(self._tokens.ends[0])
        return Prompt(tuple(tokens), places[USER], places[ITEM], lost)

    def _tokens_of(self, text: str) -> list[int]:
        return [token for token in self._tokens.tokens(text) if token not in self._special]


def _parts(tokenizer: Any, domain: str, with_profiles: bool) -> Iterator[list[int] | str]:
    """Tokens, and the names of the slots between them."""
    text = TASK.format(domain=domain) + (WITH_PROFILES if with_profiles else "") + "\n" + LAST
    if tokenizer.chat_template:
        message = [{"role": "user", "content": text}]
        text = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    else:
        text += "\n\n"
        begin = tokenizer("")["input_ids"][:1]
        if begin == [tokenizer.bos_token_id]:
            yield begin
    slots = (USER, ITEM, OF_USER, OF_ITEM)
    for part in re.split(f"({'|'.join(slots)})", text):
        if part in slots:
            yield part
        elif part:
            yield list(tokenizer(part, add_special_tokens=False)["input_ids"])


def _special(tokenizer: Any) -> frozenset[int]:
    """Tokens with a special meaning to the model."""
    added = {token for token, about in tokenizer.added_tokens_decoder.items() if about.special}
    return frozenset((added | set(tokenizer.all_special_ids)) - {tokenizer.unk_token_id})
