"""Patterns of the extractor ``atomic``: what is no statement, and phrases of praise and complaint."""

from __future__ import annotations

import re

EXPERIENCE = re.compile(
    r"^(?:(?:and|so|but|then|also|anyway|now|well|yes|since|after|because|when|as|while|before|until)\s+)*"
    r"(?:(?:i|we)(?:['’](?:ve|m|d|ll)|\s+(?:have|had|am|was|were|will|would|do|did|don['’]?t|didn['’]?t|"
    r"just|also|really|"
    r"always|never|already|only|first|recently|finally|now|usually|still|currently))*\s+"
    r"(?:bought|buy|buying|purchas\w+|order\w*|got|get|received|own\w*|have|had|tried|try|use|used|using|"
    r"play|played|playing|gave|give|"
    r"need\w*|want\w*|decided|went|wanted|read|saw|thought|think|looked|looking|search\w*|returned|"
    r"replace\w*|put|took|keep|kept|"
    r"recommend\w*|rate\w*|hope|wish|plan\w*|know|knew|guess|figured|expect\w*|admit|say|write|wrote|"
    r"change\w*|happy|satisfied|pleased|"
    r"impressed|tend|chose|choose|listen\w*|installed|restrung|should\w*|surprised|glad|fan|sure|"
    r"intermediate|love|loved|like|liked|enjoy|hate|prefer|a|an|the)\b"
    r"|my\s+(?:\w+\s+)?(?:son|daughter|wife|husband|friend|brother|sister|kids?|dad|father|mother|nephew|"
    r"grandson|band|old|other|first|"
    r"last|previous)\b"
    r"|(?:bought|purchased|ordered|received|got|had|owned|tried|used|installed|order|plan|love|loved|like)\b)",
    re.IGNORECASE,
)
CONDITION = re.compile(
    r"^(?:if|unless|when|whenever|once|until|should|whether|in case|as long as|depending|maybe|perhaps)\b"
    r"|\b(?:if (?:you|i|it|they|we)|would(?: have| be|n['’]t)|should(?: have|n['’]t)|might have|"
    r"could have|could be|wish)\b",
    re.IGNORECASE,
)
OTHERS = re.compile(
    r"^(?:his|her|he|she|more|none)\b|\bnot for (?:people|those)\b|\bno matter\b|\blooks? like (?:i|it|they|"
    r"you|we)\b|\breviews?\b|\b(?:first|favou?rite)\b.*\bi\b|\bought to\b|"
    r"^(?:(?:my|the|all|any|of|with|for|like|to|from|and)\s+)*(?:others?|another|most|many|previous|"
    r"old(?:er)?|competitors?|every|any|some|"
    r"people|someone|anyone|everyone|unlike|instead|compared)\b|\bout there\b|^there (?:are|is) (?:much|"
    r"many|plenty|better|other)\b"
    r"|\b(?:friends?|son|daughter|husband|wife|family|nephew|grandson|kids?)\b|\b(?:i|we) (?:tried|had|"
    r"have had|owned|used to)\b"
    r"|\b(?:it |not |n['’]t )?matters?\b|^(?:how|what|why|who|where|whether|such as|feel like|your ability|description)\b"
    r"|^not (?:like|as)\b|\btoo good to\b|^it['’]?s been\b"
    r"|\b(?:last time|best money|for (?:the |over )?(?:last|past)|years? ago|so many years|since i)\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    r"^(?:just\s+|please\s+|so\s+)?(?:buy|have|try|get|go|give|check|don['’]?t|do not|make sure|keep|"
    r"look|read|see|save|take|be|spend|"
    r"remember|note|trust me|think|put|use|click|hit|let|plug|clamp|forget|spring|pay|hope|imagine|"
    r"turns out|expect|wish|consider|only spent|spent|added)\b",
    re.IGNORECASE,
)
OPINION = re.compile(
    r"^(?:(?:it|this|they|these|that)(?:['’]?(?:s|re)|\s+(?:is|are|was|were))\s+)?(?:an?\s+|the\s+|my\s+|"
    r"just\s+|so\s+|very\s+|really\s+)*"
    r"(?:great|good|excellent|awesome|amazing|fantastic|perfect|nice|best|cool|wonderful|favorite|"
    r"terrific|superb|neat|fine|decent|"
    r"recommended|highly recommended|love|satisfied|happy|pleased|\s)+"
    r"(?:(?!(?:sound\w*|quality|value|price|tone|looking|feeling)\b)[\w-]+\s+)?(?:product|item|stuff|buy|purchase|"
    r"one|ones|thing|gadget|company|"
    r"brand|choice|addition|accessory|service|little|tool|strings?|cables?|straps?|picks?|tuners?|mics?|"
    r"microphones?|pedals?|stands?|"
    r"capos?|metronomes?|guitars?|speakers?|idea|job|\s)*$",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"^(?:(?:and|but|so|also|plus|because|that|which|overall|again)\s+)*"
    r"(?:it|its|it['’]s|they|they['’]re|these|this|the|those|that|both|each|everything|there|nothing|no|"
    r"none|all|you can(?:not|['’]?t)?)\b"
    r"|^(?:[\w'’&-]+\s+){1,4}(?:is|are|was|were|has|works?|worked|sounds?|looks?|feels?|plays?|keeps?|"
    r"stays?|holds?|fits?|sits?)\b",
    re.IGNORECASE,
)
PREDICATE = re.compile(
    r"^(?:is|are|was|has|have|holds?|fits?|works?|worked|sounds?|sounded|looks?|feels?|plays?|keeps?|"
    r"stays?|sits?|stands?|makes?|"
    r"does|do|comes?|came|gives?|provides?|adds?|allows?|lasts?|stopped|lacks?|clips?|attaches|prevents?|"
    r"protects?|arrived|"
    r"barely|never|doesn['’]?t|don['’]?t|does not|do not|won['’]?t|isn['’]?t|not|no|easy|easily|lights?|"
    r"built|made|well|seems?)\b",
    re.IGNORECASE,
)
LIKING = re.compile(
    r"^(?:i|we)\s+(?:(?:really|also|do|especially|particularly)\s+)*(?:like|love|appreciate)\s+(?:the|how|that|its)\b"
    r"|^(?:i|we)(?:['’]m|\s+am|\s+are)\s+(?:(?:very|really|quite|so)\s+)*(?:happy|pleased|satisfied|"
    r"impressed)\s+with\s+(?:the|its)\b"
    r"|^(?:i|we)\s+(?:(?:also|even|really|immediately|have)\s+)*(?:can|could|noticed|found)\b"
    r"|^(?:i|we)(?:['’]ve|\s+have)\s+(?:never|not|no)\b",
    re.IGNORECASE,
)
"""What follows says why, in contrast to "I like it"."""
VERB = re.compile(
    r"\b(?:is|are|was|were|isn['’]?t|aren['’]?t|has|have|had|can|cannot|will|won['’]?t|does|do|did|"
    r"don['’]?t|doesn['’]?t|didn['’]?t|"
    r"[a-z]+(?:s|ed)|felt|kept|broke|came|made|got|went|held|fit|sound|look|feel|play|work|keep|stay|"
    r"last|hold|cost|give|make|it['’]s|they['’]re)\b",
    re.IGNORECASE,
)
RELIEF = re.compile(
    r"^(?:there (?:is|are|was) )?no (?:more|excess|noticeable|extra|guess ?work|need|issues?|static|"
    r"buzz(?:es)?|hums?|hiss|problems?|"
    r"\W?\w+\W? (?:noise|sound))",
    re.I,
)
"""The absence of something unwanted."""
NEGATION = re.compile(
    r"n['’]t\b|\b(?:not(?! only)|never|no(?! (?:time|doubt|wonder))|without|hardly|dont|doesnt|wont|isnt|didnt)\b",
    re.IGNORECASE,
)
TOO = re.compile(r"(?<!not )(?<!n't )(?<!never )\btoo (?!good\b|bad\b)\w+", re.IGNORECASE)
"""More than is wanted: "too small"."""
HARDLY = re.compile(r"\b(?:barely|hardly|not (?:very|so|that|too|really))\b", re.IGNORECASE)
BAD = re.compile(
    r"\b(?:comes?|came|falls?|fell|pops?|popped|slides?|slid) (?:off|apart|loose|out)\b"
    r"|\b(?:wears?|wearing|worn) (?:out|down|off)\b"
    r"|\b(?:may|might|could|will) (?:break|snap|bend|crack|damage|scratch)\b|\bgets? (?:confused|in the way|stuck)\b"
    r"|\b(?:hard|difficult|tough|impossible) to (?!beat|go|mess)\w",
    re.IGNORECASE,
)
"""Phrases that complain, whose words do not."""
RELIEVED = re.compile(
    r"\b(?:blocks?|reduc\w+|eliminat\w+|prevents?|less|removes?|cuts? (?:down|out)|avoids?|without|"
    r"(?:low|minimal|zero|little|hardly any|almost no)(?=[\s\w-]{0,20}"
    r"(?:noise|distortion|hum|hiss|feedback|buzz\w*|wear|fatigue))|takes? away|taking away|gets? rid of)\b",
    re.IGNORECASE,
)
"""What is said behind is unwanted, and is gone."""
COMPARISON = re.compile(
    r"\s(?:than|compared (?:to|with)|unlike|like (?:some|other|the other|many|most|the cheap\w*)|instead of|"
    r"as opposed to)\s.*$",
    re.IGNORECASE,
)
AS_GOOD_AS = re.compile(r"(\bas \w+) as\s.*$", re.IGNORECASE)
"""Behind both stand other products, whose words say nothing about the feeling for this one."""
UNFINISHED = re.compile(
    r"\b(?:like|of|to|with|for|a|an|the|and|or|is|are|was|be|over|from|as|by|their|its|your|my|such|"
    r"an? (?:very |really )?(?:simple|quick|nice|good|great|cool|bright|easy|solid|small|little))$",
    re.IGNORECASE,
)
"""A statement that was cut."""
GERUND = re.compile(
    r"^(?:playing|being|having|going|getting|using|adding|keeping|making|putting|looking|buying|trying|moving|taking)\b",
    re.IGNORECASE,
)
GOOD = re.compile(
    r"\b(?:do(?:es)? (?:its|the|a (?:very )?(?:good|nice|great)) job|did the job|gets? the job done|"
    r"what (?:it|they)(?:['’]s| is| are)? (?:supposed|says?)|"
    r"(?:price[sd]?|prices) (?:is |was |are |were |just )*right|"
    r"(?:can['’]?t|cannot|hard to) (?:beat|go wrong|mess)|as (?:advertised|described|reported|expected|"
    r"it should)|no guess ?work|heavy[- ]duty|"
    r"dead (?:quiet|silent)|rock solid|like a charm|not dull|well[- ](?:built?|made)|idiot[- ]proof|"
    r"no problems?|no issues?|never had|does the trick|exactly what|lasts? forever|kicks? ass|"
    r"dead (?:on|accurate)|on time|as promised|"
    r"without (?:any )?(?:problems?|issues?|falling|slipping))\b",
    re.IGNORECASE,
)
"""Phrases that praise, whose words do not."""
MEASURE = re.compile(
    r"\d\s*(?:[\"”]|(?:grams?|kg|mm|cm|inch(?:es)?|feet|ft|met(?:er|re)s?|dollars|hours?|watts?|volts?|"
    r"ounces?|pounds?)\b)",
    re.IGNORECASE,
)
"""A number with its unit."""
TRIMMED = re.compile(
    r"^(?:(?:and|but|so|also|plus|because|since|that|which|overall|again|as|however|although|though|"
    r"actually|basically|i think|"
    r"i thought|i believe|i found|i find|it seems like|it seems that|to me|yes|well(?=,)|definitely|for me|"
    r"even|yet|with|then|in my opinion|imo|like i said|"
    r"i must say|i can say|i have to say|to my surprise)\b[\s,]*)+",
    re.IGNORECASE,
)
