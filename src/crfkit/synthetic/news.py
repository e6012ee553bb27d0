"""Generated news sentences with people, places, firms and dates: readable data for demos and tutorials."""

from __future__ import annotations

import random

from crfkit.synthetic.sentences import Token, fill_pattern


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = _words(
    "Anna Amir Carla Chelsea David Elena Farid Grace Hugo Ines Jordan Keiko Lea Marcus Nadia Omar Paula "
    "Quentin Rosa Samuel Sidney Tara Victoria Walter Yusuf Zoe"
)
_LAST = _words(
    "Abbott Alvarez Bergen Brandt Costa Dubois Eriksen Fischer Ghosh Haddad Ivanov Jensen Kimura Lindqvist "
    "Moreau Nakamura Okafor Petrov Quinn Ramirez Santos Tanaka Ueda Vargas Weber Young"
)
_PLACES = _words(
    "Bergen Chelsea Cairo Dublin Geneva Havana Jordan Kyoto Lagos Lima Lisbon Madrid Nairobi Oslo Paris Porto "
    "Quito Rome Seoul Sidney Tunis Utrecht Victoria Vienna Warsaw Zagreb"
)
_FIRMS = _words(
    "Apex Atlas Bergen Corvus Delta Fischer Helix Lima Meridian Nimbus Orion Petrov Quantum Solaris Tanaka "
    "Victoria Weber Zenith"
)
_SUFFIXES = ["Airlines", "Bank", "Energy", "Foods", "Group", "Ltd", "Motors", "Steel"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
_MONTHS = ["January", "March", "April", "May", "June", "August", "October"]
_UNKNOWN = ["bar", "cal", "dor", "fen", "gal", "hol", "jar", "kel", "lun", "mir", "nov", "pel", "ros", "tam", "ver"]

# Slots in angle brackets are filled with entities, words divided by | are alternatives. The context in vague sentences
# does not tell the kind of <ANY>.
_PATTERNS = [
    "<PER> works|worked for <ORG> in <LOC> .",
    "<PER> joined|left <ORG> on|in <DATE> .",
    "<PER> , who runs|founded <ORG> , was born in <LOC> .",
    "<PER> told reporters in <LOC> that sales|profits had doubled .",
    "<PER> flew|travelled from <LOC> to <LOC> on <DATE> .",
    "<PER> and <PER> met|argued in <LOC> last week|year .",
    "<PER> will speak|sing|teach in <LOC> on|in <DATE> .",
    "<PER> , the mayor of <LOC> , resigned|returned on <DATE> .",
    "<ORG> opened|closed an office|a factory in <LOC> on|in <DATE> .",
    "<ORG> said on <DATE> that it would hire|sack 200|350|40 people in <LOC> .",
    "<ORG> bought|sued|owns <ORG> .",
    "<ORG> appointed|dismissed <PER> as chief|chairman in <DATE> .",
    "<ORG> , based in <LOC> , employs 900|1200|75 people .",
    "Shares of <ORG> rose|fell by 3|5|12 percent on <DATE> .",
    "Shares in <ORG> were unchanged after <PER> left .",
    "On <DATE> , <PER> sold|gave a house in <LOC> to <PER> .",
    "In <DATE> , <ORG> moved|fled from <LOC> to <LOC> .",
    "The trains|roads between <LOC> and <LOC> were closed on <DATE> .",
    "The police in <LOC> arrested|questioned <PER> on <DATE> .",
    "The weather in <LOC> was warm|cold until <DATE> .",
    "Nobody in <LOC> has seen <PER> since <DATE> .",
    "Heavy rain|snow reached <LOC> and <LOC> on <DATE> .",
    "A spokesman|lawyer for <ORG> declined to comment .",
    "A court|bank in <LOC> ruled against <ORG> and <PER> .",
    "Analysts expect <ORG> to beat <ORG> in <DATE> .",
    "It may|will rain in <LOC> on <DATE> .",
]
_VAGUE = [
    "Many people know|remember <ANY> .",
    "<ANY> was in the news again on <DATE> .",
    "They talked|wrote about <ANY> and <ANY> .",
    "<ANY> lost|won against <ANY> on <DATE> .",
    "Everybody is waiting for <ANY> .",
    "What happened to <ANY> is a mystery|secret .",
]

NEWS = """Elena Costa joined Meridian Bank in March.
Orion Airlines opened an office in Lisbon on Tuesday.
Victoria Haddad flew from Nairobi to Victoria on May 14.
Shares of Helix Foods fell by 5 percent on Friday.
The mayor of Bergen, Rosa Bergen, will speak in Oslo in June.
Zenith, based in Vienna, bought Solaris Energy.
Jordan Weber told reporters in Jordan that sales had doubled.
A lawyer for Weber Motors declined to comment.
Nobody in Quito has seen Hugo Alvarez since Monday.
Heavy snow reached Warsaw and Zagreb on January 9.
Atlas Group appointed Priya Malhotra as chief in August.
They talked about Chelsea and Tanaka.
"""


def news_corpus(n_sentences: int, seed: int = 0) -> list[list[Token]]:
    """Return short news sentences with people, places, firms and dates, labelled in IOB2.

    Some names are ambiguous (Bergen is a place, a firm and a surname) and some occur nowhere else, so a tagger has
    to use the context and the spelling, and does not reach 100 %.

    >>> " ".join(word for word, shape, label in news_corpus(1, seed=4)[0])
    'Many people know Yusuf .'
    """
    rng = random.Random(seed)
    return [_sentence(rng) for _ in range(n_sentences)]


def _sentence(rng: random.Random) -> list[Token]:
    return fill_pattern(rng.choice(_VAGUE if rng.random() < 0.3 else _PATTERNS), _entity, rng)


def _entity(kind: str, rng: random.Random) -> list[str]:
    unknown = "".join(rng.sample(_UNKNOWN, rng.randint(2, 3))).capitalize()

    def known_or(names: list[str], share: float) -> str:
        return rng.choice(names) if rng.random() < share else unknown

    if kind == "PER":
        last = known_or(_LAST, 0.6)
        return [rng.choice(_FIRST), last] if rng.random() < 0.75 else [rng.choice([rng.choice(_FIRST), last])]
    if kind == "LOC":
        return (["New"] if rng.random() < 0.05 else []) + [known_or(_PLACES, 0.6)]
    if kind == "ORG":
        return [known_or(_FIRMS, 0.6)] + ([rng.choice(_SUFFIXES)] if rng.random() < 0.5 else [])
    if rng.random() < 0.5:
        return [rng.choice(_DAYS)]
    return [rng.choice(_MONTHS)] + ([str(rng.randint(1, 28))] if rng.random() < 0.4 else [])
