"""Words of the extractor ``atomic``: feeling about products, and topics without a keyword."""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_text.atomic.words import split_words

FEELING: Mapping[str, float] = {
    **dict.fromkeys(
        split_words(
            """
sturdy durable solid accurate reliable precise rugged robust beefy compact lightweight portable crisp clear
smooth rich warm full versatile adjustable comfortable comfy soft effective handy convenient useful affordable
inexpensive steal bargain unbeaten unbeatable worth securely snugly tight tightly well-made well-built
stunning simple lasting long-lasting grippy stable quick quickly fast easily consistent quiet bright vivid
programmable limitless delicious cozy works worked work fits holds held stays stay tough silky flawlessly
transparent versatility natural flexible secure intuitive responsive adequate plenty coated padded classic
premium decent light well-build precisely accurately properly correctly
"""
        ),
        1.6,
    ),
    **dict.fromkeys(
        split_words(
            """
flimsy shaky pricey overpriced expensive noisy noise hum hiss buzz buzzing muddy tinny stiff bulky brittle
faint lacks lack lacking malfunctioned malfunction broke breaks broken breaking cracked bent loose slips slip
slipped stopped fails failed failing rattles rattle rust rusted harsh thin barely intermittent fiddly awkward
scratches scratch scratchy scratchiness useless defective returned difficult cheaply limited slow
uncomfortable flexy wobbly dull heavier sterile unless damaging crackles crackle short-lived hurts
dim slippery sore fragile clumsy
"""
        ),
        -1.8,
    ),
}
"""Added to VADER's lexicon, whose scale is -4 to 4; these are words about products that it lacks or scores as neutral."""

PRICE_SENTIMENT: Mapping[str, float] = {
    "cheap": 1.8,
    "cheapest": 1.8,
    "cheaper": 1.5,
    "low": 1.2,
    "cents": 0.8,
    "bucks": 0.8,
}
"""In statements on the price; of a build, "cheap" is a fault."""

CUES: Mapping[str, tuple[str, ...]] = {
    "price": (
        "delivered fast",
        "came fast",
        "came quickly",
        "arrived fast",
        "arrived quickly",
        "delivered",
        "on a budget",
        "tight budget",
        "budget",
        "dollar",
        "dollars",
        "delivery",
        "well packaged",
        "arrived on time",
        "you pay for",
        "steal",
        "price",
        "value",
        "deal",
        "worth",
        "bargain",
        "pricey",
        "for the money",
        "bucks",
        "cheapest",
        "hard to beat",
        "cheap",
        "affordable",
        "inexpensive",
    ),
    "setup": (
        "easy to use",
        "easy to read",
        "easy to install",
        "hard to use",
        "set up",
        "hook up",
        "straightforward",
        "intuitive",
        "self explanatory",
        "put on",
        "learning curve",
        "easy",
        "easily",
        "simple",
        "convenient",
        "a breeze",
        "no guess work",
        "easy to read",
    ),
    "functionality": (
        "holds",
        "stays in place",
        "stay in place",
        "does its thing",
        "well thought out",
        "does the job",
        "did the job",
        "job done",
        "nice job",
        "does its job",
        "do the job",
        "does what",
        "do what",
        "helpful",
        "big help",
        "useful",
        "effective",
        "does the trick",
        "programmable",
        "lights up",
        "works",
        "work",
        "working",
        "worked",
        "stopped working",
        "features",
        "fast",
        "protects",
        "cleans",
        "keeps",
        "reliable",
        "limitless",
    ),
    "build": (
        "comes off",
        "came off",
        "falls off",
        "fell off",
        "wear out",
        "wears out",
        "wear down",
        "wears down",
        "worn out",
        "falls apart",
        "construction",
        "craftsmanship",
        "high quality",
        "poor quality",
        "well put together",
        "rock solid",
        "fragile",
        "dead on arrival",
        "fell apart",
        "well built",
        "well-built",
        "well-build",
        "well build",
        "well made",
        "coated",
        "coating",
        "strong",
        "long-lasting",
        "long lasting",
        "holding up",
        "held up",
        "padding",
        "well constructed",
        "poor",
        "bent",
        "dented",
        "cracked",
        "damaging",
        "flexy",
        "malfunctioned",
        "last",
        "lasts",
        "break",
        "breaks",
        "broke",
    ),
    "sound": (
        "sound quality",
        "sounding",
        "rich tone",
        "background noise",
        "clean tone",
        "recordings",
        "clarity",
        "warm",
        "quiet",
        "noise",
        "loud",
        "tone",
        "sounds",
        "noiseless",
        "compression",
        "clear",
        "static",
        "sustain",
    ),
    "tuning": (
        "easy to tune",
        "hard to tune",
        "holds tune",
        "tunes",
        "in tune",
        "stay in tune",
        "stays in tune",
        "accurate",
        "precise",
        "precisely",
    ),
    "fit": (
        "easy to carry",
        "easy to store",
        "easy to transport",
        "takes up",
        "take up",
        "room",
        "space",
        "size",
        "too small",
        "too big",
        "too large",
        "too short",
        "too long",
        "too heavy",
        "compact",
        "portable",
        "carry",
        "sits",
        "fits",
        "fit",
        "securely",
        "snug",
        "snugly",
        "tall",
    ),
    "playability": (
        "easy to play",
        "hard to play",
        "difficult to play",
        "fun to play",
        "plays well",
        "plays great",
        "play well",
        "play great",
        "on my fingers",
        "on the fingers",
        "to hold",
        "to play",
        "grip",
        "grippiness",
        "comfortable",
        "feel",
        "feels",
        "feel right",
        "stiffness",
        "easy on the fingers",
        "easy on your fingers",
        "easy on my fingers",
        "easy on their fingers",
    ),
    "connectivity": ("connect", "connects", "connection", "connections"),
    "appearance": ("stunning", "beautiful", "gorgeous", "logo", "looking"),
}
"""Further keywords of common topics, by the topic's short name, for domains that have a topic of this name."""

STRONG: frozenset[str] = frozenset(
    split_words(
        """
price value deal worth bargain pricey steal cheap easy easily simple tune sound sounds tone noise accurate
looks look shipping delivery delivered
"""
    )
)
"""Keywords that decide the topic wherever they stand in the statement."""

PRODUCTS: frozenset[str] = frozenset(
    split_words(
        """
cable cables cord cords strap straps tuner tuners capo capos pedal pedals jack jacks adapter battery batteries
plug plugs interface game games toy toys arrived return returned refund effect effects wood leather
plastic metal box case neck bass play playing played
"""
    )
)
"""Keywords that may be the product itself, or that something happened to it: no topic without another keyword."""
