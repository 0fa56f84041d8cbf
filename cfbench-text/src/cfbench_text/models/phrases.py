"""The answer selector ``rules`` of QuestEval: phrases of a text for which questions are generated, without a model.

The published code takes the entities and noun chunks that spaCy finds in the first five sentences. Here a phrase is a
run of words between punctuation and words of the closed classes (pronouns, prepositions, conjunctions, auxiliaries,
adverbs of degree), with the preceding determiner. These are nouns with their adjectives, names and numbers, and
predicates such as "warm" in "the sound is warm", which spaCy's chunks do not contain. Verbs are recognised by position
only: after a pronoun as subject, "to" or a modal verb, and before a determiner or pronoun ("broke the string"); other
verbs remain in the phrases. The signature names this selector.

All sentences are read by default. A phrase that occurs twice, ignoring case, articles and punctuation, is selected
once; the published code selects repetitions again, and also a name that is a noun chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cfbench_text.sentence_segmentation import sentences

_TOKEN = re.compile(r"\w+(?:(?<=\d)[.,](?=\d)\w+|['’-]\w+)*|[^\w\s]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DETERMINERS = _words(
    """a an the this that these those my your his her its our their some any no every each another both all"""
)
BEFORE_A_VERB = _words(
    """i you he she we they it who to would can could will may might must shall should do does did don't doesn't
    didn't won't can't cannot couldn't wouldn't shouldn't i'd i'll we'd we'll you'd you'll they'd they'll let's
    please"""
)
AFTER_A_VERB = DETERMINERS | _words("me him it us them you")
ADVERBS = _words(
    """not never very too really quite rather just only even still already again ever always often sometimes almost
    also then pretty much more most less least well actually probably definitely"""
)
BETWEEN = ADVERBS | _words(
    """am is are was were be been being isn't aren't wasn't weren't has have had having hasn't haven't hadn't i'm i've
    it's that's he's she's we're we've you're you've they're they've there's there here
    of in on at by for from with without about into onto over under up down out off through between against during
    before after above below within across around behind near per than as like via toward towards upon
    and or but nor so yet if because although though while whereas unless until since when where whether which whose
    whom what why how however therefore plus
    me him us them mine yours hers ours theirs myself yourself itself himself herself themselves ourselves one ones
    something anything nothing everything someone anyone everyone enough
    far ago away back together maybe perhaps yes supposed
    gets got get goes go went gone going seems seem seemed looks sounds feels makes make made"""
)
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normal(text: str) -> tuple[str, ...]:
    """The words of an answer as SQuAD compares them: lower case, without punctuation and articles."""
    bare = "".join(mark for mark in text.lower() if mark not in _PUNCTUATION)
    return tuple(_ARTICLES.sub(" ", bare).split())


class Phrases:
    """``sentences``: phrases of so many sentences at the beginning of a text; None: of all."""

    def __init__(self, sentences: int | None = None) -> None:
        self.sentences = sentences

    def select(self, texts: Sequence[str]) -> list[list[str]]:
        return [self._of_text(text) for text in texts]

    def signature(self) -> Mapping[str, str]:
        return {"rules": "1", "sentences": "all" if self.sentences is None else str(self.sentences)}

    def _of_text(self, text: str) -> list[str]:
        found: dict[tuple[str, ...], str] = {}
        for sentence in sentences(text)[: self.sentences]:
            for phrase in phrases(sentence):
                if words := normal(phrase):
                    found.setdefault(words, phrase)
        return list(found.values())


def phrases(sentence: str) -> Iterator[str]:
    """As they stand in the sentence, determiners included."""
    run: list[re.Match[str]] = []
    determined = verb_next = False
    for token in _TOKEN.finditer(sentence):
        word = token.group().lower().replace("’", "'")
        closed = word in DETERMINERS or word in BEFORE_A_VERB or word in BETWEEN
        if closed or not word[0].isalnum():
            if word in AFTER_A_VERB and len(run) > 2 * determined:  # all but "the price it has"
                run = run[:-1]
            yield from _phrase(sentence, run, determined)
            determined = word in DETERMINERS
            run = [token] if determined else []
            verb_next = word in BEFORE_A_VERB or (verb_next and word in ADVERBS)
        elif verb_next:
            verb_next = False
        else:
            run.append(token)
    yield from _phrase(sentence, run, determined)


def _phrase(sentence: str, run: Sequence[re.Match[str]], determined: bool) -> Iterator[str]:
    """A determiner alone is none."""
    if len(run) > determined:
        yield sentence[run[0].start() : run[-1].end()]
