"""An extractor of one's own: the phrases of a list are statements.

XRec's texts and references are one long sentence each, "The user would enjoy the business because of its delicious
food, friendly staff, and the ocean view, making it ...". The extractor ``rules`` takes clauses, which such a sentence
has one or two of, all with the same opening. Here the opening is left out, and what commas part are statements.
"""

import re

from cfbench_text.extractors.rules import Config, Rules

OPENING = re.compile(
    r"""^\W*(?:short\ answer:\s*)?(?:the\ |'s\ )?(?:user|reader|customer|you|they)\b[^,.;:]{1,120}?
        \b(?:because\ of|because|due\ to|for)\s+""",
    re.IGNORECASE | re.VERBOSE,
)
BETWEEN = re.compile(r"\s*[,;:]\s+(?:and\s+|as well as\s+|making it\s+|including\s+|which\s+)?|\s+despite\s+")


class Phrases:
    def __init__(self, config=None):
        self._rules = Rules(Config(words=2))

    def extract(self, texts, domain):
        return self._rules.extract([parted(text) for text in texts], domain)

    def signature(self):
        return {"extractor": "phrases of a list", **self._rules.signature()}


def parted(text):
    """The text without its opening, every phrase a line."""
    return BETWEEN.sub("\n", OPENING.sub("", text))
