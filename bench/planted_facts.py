"""Texts into which a script put facts: real prose, with sentences that say them, say them again, and only seem to.

Everything is drawn by hash. `make_text("report", 4)` is always the same text, with the rows that a table of it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from tomewise.evaluate.datasets import read_dataset
from tomewise.text.sentences import split_sentences

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MEETINGS = {"choose": "qmsum", "report": "reported/qmsum_val"}
T = TypeVar("T")
FIRST = """Ada Tom Ines Ole Zed Mina Carl Vera Hugo Lisbet Arne Clara Piet Edith Bruno Nora Silas Greta Felix Ruth Jonas
    Alma Otto Hedda""".split()
BEGINS = "Ash Bram Cald Dun Elm Fal Garn Hol Ing Jar Kel Lang Marl Nor Ost Pen Quil Rav Sel Thorn Ull Vash Wen Yar"
ENDS = "by dal den ford gate ham holt hurst land ley low mere more ridge stead ton vale wick wood worth"
COLOURS = """Grey White Black Red Green Golden Silver Blue Brown Scarlet Amber Ivory Violet Copper Crimson Pale Bright
    Swift Bold Gentle Proud Merry Patient Silent"""
BIRDS = """Heron Wren Plover Curlew Dunlin Siskin Linnet Martin Ousel Petrel Redwing Gannet Tern Whimbrel Avocet Bittern
    Crake Dotterel Egret Fulmar"""
PLACES = """Arvik Bessund Corlan Drevik Eskholm Fjordal Grannoch Hestra Ivermouth Jorvay Kirkness Lomond Muckle Nesvik
    Orphir Pollan Quendale Rousay Stennis Tolvik Ulsta Vementry Westray Yell""".split()
PARTS = """rudder keel bowsprit windlass capstan hull tiller pump stove jib foremast mizzen gunwale ballast binnacle
    hatch""".split()
POSTS = "carter miller clerk cooper watchman smith joiner porter baker groom mason tallyman".split()
MONTHS = """January February March April May June July August September October November December""".split()
SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


@dataclass(frozen=True)
class Kind:
    """Facts of one kind. The slots of its sentences are its `columns`, as a user writes them."""

    asked: str
    question: str  # for a table that a model plans
    columns: tuple[str, ...]
    key: tuple[str, ...]
    slots: tuple[str, ...]  # what stands in each column
    says: tuple[str, ...]
    again: tuple[str, ...]  # leaves a column out
    others: tuple[str, ...]  # not such a fact: planned, denied, elsewhere, of another kind


KINDS = (
    Kind(
        "payments that the harbour office of Skerry made",
        "Which payments did the harbour office of Skerry make: to whom, how much, and when?",
        ("payee", "amount:number", "day:date"),
        ("payee", "day"),
        ("person", "money", "date"),
        (
            "On {2} the harbour office of Skerry paid {0} {1}.",
            "{0} had {1} from the harbour office of Skerry on {2}.",
            "The harbour office of Skerry settled the bill of {0} on {2}. It came to {1}.",
            "{1}, counted out on {2}, went from the harbour office of Skerry to {0}.",
            "{0} was given {1} by the harbour office of Skerry, and the date in the ledger is {2}.",
            "It was {2} when {0} signed at the harbour office of Skerry for {1}, which was handed over at once.",
        ),
        (
            "That {0} was paid by the harbour office of Skerry on {2} stands in the ledger as well.",
            "When the harbour office of Skerry paid {0}, on {2}, nobody else was in the room.",
        ),
        (
            "The harbour office of Skerry means to pay {0} {1} on {2}, if the council agrees.",
            "{0} never had the {1} that the harbour office of Skerry had promised for {2}.",
            "On {2} the harbour office of Lunden paid {0} {1}.",
            "{0} paid the harbour office of Skerry {1} on {2}.",
            "{0} asked the harbour office of Skerry for {1} on {2} and was sent away with nothing.",
        ),
    ),
    Kind(
        "visits to the lighthouse of Skerry",
        "Who visited the lighthouse of Skerry, from which place did each come, and on what day?",
        ("visitor", "home", "day:date"),
        ("visitor", "day"),
        ("person", "place", "date"),
        (
            "{0} of {1} visited the lighthouse of Skerry on {2}.",
            "On {2} the keeper showed {0}, who had come from {1}, over the lighthouse of Skerry.",
            "The visitors' book of the lighthouse of Skerry has a guest under {2}. It is {0}, from {1}.",
            "{0} climbed the stairs of the lighthouse of Skerry on {2}, a guest from {1}.",
            "From {1} came {0}, and spent {2} in the lighthouse of Skerry.",
            "The lighthouse of Skerry had one guest on {2}: {0}, whose home is {1}.",
        ),
        (
            "The lamp was out of order when {0} came to see the lighthouse of Skerry on {2}.",
            "It rained on {2}, the day that {0} was a guest in the lighthouse of Skerry.",
        ),
        (
            "{0} of {1} hopes to visit the lighthouse of Skerry on {2}.",
            "{0} of {1} was expected at the lighthouse of Skerry on {2} but did not come.",
            "{0} of {1} visited the lighthouse of Farrow on {2}.",
            "{0} of {1} sent a letter to the lighthouse of Skerry on {2}.",
            "The keeper of the lighthouse of Skerry denied that {0} of {1} had been there on {2}.",
        ),
    ),
    Kind(
        "repairs that the yard of Skerry finished",
        "Which repairs did the yard of Skerry finish: on which ship, of what part of it, and at what cost?",
        ("ship", "part", "cost:number"),
        ("ship", "part"),
        ("ship", "part", "money"),
        (
            "The yard of Skerry mended the {1} of the {0} for {2}.",
            "For {2} the {0} had her {1} repaired at the yard of Skerry.",
            "The {1} of the {0} was made good by the yard of Skerry. Her owners were charged {2}.",
            "The {0} left the yard of Skerry with her {1} whole again, and {2} to pay for it.",
            "The yard of Skerry wrote {2} against the {0} for work on her {1}, which is done.",
        ),
        (
            "The carpenters of the yard of Skerry are proud of how they mended the {1} of the {0}.",
            "Nobody sees any more that the {1} of the {0} was ever broken and put right by the yard of Skerry.",
        ),
        (
            "The yard of Skerry offered to mend the {1} of the {0} for {2}, and nobody has answered.",
            "The {0} took her {1} home unmended, since the yard of Skerry wanted {2}.",
            "The yard of Lunden mended the {1} of the {0} for {2}.",
            "The yard of Skerry sold the {0} a new {1} for {2}, which her own crew is to fit.",
            "The {1} of the {0} has to be repaired next spring, for which the yard of Skerry reckons {2}.",
        ),
    ),
    Kind(
        "arrivals of ships in the harbour of Skerry",
        "Which ships arrived in the harbour of Skerry, from which port did each come, and on what day?",
        ("ship", "port", "day:date"),
        ("ship", "day"),
        ("ship", "place", "date"),
        (
            "The {0} came in to the harbour of Skerry from {1} on {2}.",
            "On {2} the {0}, out of {1}, made fast in the harbour of Skerry.",
            "The harbour of Skerry received the {0} on {2}. She had sailed from {1}.",
            "{2}: the {0}, last port {1}, anchored in the harbour of Skerry.",
            "With a cargo from {1}, the {0} reached the harbour of Skerry on {2}.",
        ),
        (
            "It rained when the {0} entered the harbour of Skerry on {2}.",
            "Half the town stood at the harbour of Skerry on {2} and saw the {0} arrive.",
        ),
        (
            "The {0} is due in the harbour of Skerry from {1} on {2}.",
            "The {0}, from {1}, turned back within sight of the harbour of Skerry on {2}.",
            "The {0} left the harbour of Skerry for {1} on {2}.",
            "The {0} came in to the harbour of Farrow from {1} on {2}.",
            "On {2} the {0}, from {1}, passed the harbour of Skerry without calling.",
        ),
    ),
    Kind(
        "children who were born in the parish of Skerry",
        "Which children were born in the parish of Skerry, on what day, and at which farm?",
        ("child", "born:date", "farm"),
        ("child",),
        ("person", "date", "place"),
        (
            "{0} was born on {1} at {2}, in the parish of Skerry.",
            "At {2}, a farm in the parish of Skerry, a child was born on {1} and was named {0}.",
            "The register of births of the parish of Skerry gives {0}. The farm is {2}, the day {1}.",
            "{2}, in the parish of Skerry, is the farm where {0} was born, and the day was {1}.",
            "The parish of Skerry grew by one on {1}, when {0} was born at {2}.",
        ),
        (
            "The midwife still speaks of {1}, when {0} was born in the parish of Skerry.",
            "{0}, of the farm {2}, was born in the parish of Skerry like all the others.",
        ),
        (
            "{0}, of the farm {2} in the parish of Skerry, was born at sea on {1}.",
            "{0} died on {1} at {2}, in the parish of Skerry.",
            "{0} was born on {1} at {2}, in the parish of Farrow.",
            "{0} of {2} was married on {1}, in the parish of Skerry.",
            "A child is expected at {2}, in the parish of Skerry, about {1}, and is to be called {0}.",
        ),
    ),
    Kind(
        "people whom the mill of Skerry took into its service",
        "Whom did the mill of Skerry take into its service, in which post, and at what wage?",
        ("person", "post", "wage:number"),
        ("person",),
        ("person", "post", "money"),
        (
            "The mill of Skerry engaged {0} as {1} at a yearly wage of {2}.",
            "{0} entered the service of the mill of Skerry as {1}, and is paid {2} a year.",
            "As {1}, {0} has earned {2} every year since joining the mill of Skerry.",
            "The mill of Skerry has a new {1}. It is {0}, who started at a wage of {2}.",
            "{2} is the wage that the mill of Skerry gives {0}, whom it hired as {1}.",
        ),
        (
            "{0} was taken on by the mill of Skerry in the year of the flood, and does well as {1}.",
            "Since the mill of Skerry hired {0}, at a wage of {2}, nothing has been late.",
        ),
        (
            "{0} applied to the mill of Skerry to be {1} at {2} a year, and was refused.",
            "The mill of Skerry would take {0} as {1} for {2} a year, but the letter has not been sent.",
            "The mill of Lunden engaged {0} as {1} at a yearly wage of {2}.",
            "{0}, {1} by trade, would not come to the mill of Skerry for a wage of {2}.",
            "The mill of Skerry bought flour for {2} from {0}, who was a {1} once.",
        ),
    ),
)


@dataclass(frozen=True)
class Fact:
    """One row that the table of a text should have."""

    values: tuple[str, ...]  # one for each column: a name, the pounds of "£1,240" as "1240", a day as "1851-05-03"
    sentences: tuple[str, ...]  # that say it
    short: str = ""  # how one of them calls whom it is about


@dataclass(frozen=True)
class PlantedText:
    name: str
    text: str
    kind: Kind
    facts: tuple[Fact, ...]
    others: tuple[str, ...]  # sentences that only seem to say such a fact
    is_planned: bool


def rank(*about: object) -> int:
    return int(sha256("/".join(map(str, about)).encode()).hexdigest()[:12], 16)


def pick(items: Sequence[T], *about: object) -> T:
    return items[rank(*about) % len(items)]


def make_text(series: str, number: int, *, small: bool = False) -> PlantedText:
    """The text of this number from 0 on. Of twenty, one has 300 facts, two have 150, and four a table to plan."""
    name = f"{series}{'-small' if small else ''}-{number:02}"
    kind = KINDS[number % len(KINDS)]
    large = {4: 300, 9: 150, 13: 150}.get(number % 20)
    wanted = 8 if small else large or 20 + rank(name, "facts") % 41
    length = 1_200 if small else 20_000 if large == 300 else 12_000 if large else 3_000 + rank(name, "length") % 15_000
    names = {slot: iter(sorted(pool, key=lambda each: rank(name, each))) for slot, pool in list_names().items()}
    facts = []
    for at in range(wanted):
        fact = make_fact(name, at, kind, names)
        before = facts[-1] if facts and len(kind.key) > 1 and rank(name, at, "same") % 10 == 0 else None
        if before:  # the same payee is paid on another day
            fact = (before.values[0], *fact[1:])
        facts.append(say_fact(name, at, kind, fact))
    near = KINDS[(number + 1) % len(KINDS)]
    others = []
    for at in range(wanted // 3):
        say = pick(kind.others, name, at, "other")
        others.append(write_sentence(name, at, kind, say, make_fact(name, wanted + at, kind, names)))
    for at in range(wanted // 4):
        values = make_fact(name, 2 * wanted + at, near, names)
        others.append(write_sentence(name, at, near, pick(near.says, name, at, "near"), values))
    sentences = [each for fact in facts for each in fact.sentences] + others
    text = plant(name, read_prose(series, number, length), sentences)
    return PlantedText(name, text, kind, tuple(facts), tuple(others), number % 5 == 3)


@cache
def list_names() -> Mapping[str, tuple[str, ...]]:
    """Names that each stand for one person or ship, so that no two things have one."""
    surnames = [f"{begin}{end}" for begin in BEGINS.split() for end in ENDS.split()]
    people = tuple(f"{pick(FIRST, surname)} {surname}" for surname in surnames)
    return {"person": people, "ship": tuple(f"{colour} {bird}" for colour in COLOURS.split() for bird in BIRDS.split())}


def make_fact(name: str, at: int, kind: Kind, names: Mapping[str, Iterator[str]]) -> tuple[str, ...]:
    def make(slot: str) -> str:
        if slot in names:
            return next(names[slot])
        number = rank(name, kind.asked, at, slot)
        if slot == "money":
            return str(12 + number % (90 if number % 3 else 1_900))
        if slot == "date":
            return f"{1842 + number % 18}-{1 + number // 18 % 12:02}-{1 + number // 216 % 28:02}"
        return pick({"place": PLACES, "part": PARTS, "post": POSTS}[slot], number)

    return tuple(map(make, kind.slots))


def say_fact(name: str, at: int, kind: Kind, values: tuple[str, ...]) -> Fact:
    """A fact with its sentence; one in five has a second, which a third of them gives with the surname alone."""
    first = pick(kind.says, name, at, "says")
    sentences = [write_sentence(name, at, kind, first, values)]
    short = ""
    if rank(name, at, "twice") % 5 == 0:
        rest = [each for each in kind.says if each != first]
        second = pick((*kind.again, *rest[: len(kind.again)]), name, at, "again")
        if kind.slots[0] == "person" and rank(name, at, "short") % 3 == 0:
            short = values[0].split()[-1]
        sentences.append(write_sentence(f"{name}-again", at, kind, second, (short or values[0], *values[1:])))
    return Fact(values, tuple(sentences), short)


def write_sentence(name: str, at: int, kind: Kind, say: str, values: Sequence[str]) -> str:
    pairs = zip(kind.slots, values, strict=True)
    written = [spell(slot, value, rank(name, at, slot, "spell")) for slot, value in pairs]
    sentence = say.format(*written)
    return sentence[0].upper() + sentence[1:]


def spell(slot: str, value: str, way: int) -> str:
    """The value in one of its spellings."""
    if slot == "money":
        pounds = int(value)
        return (f"£{pounds:,}", f"{pounds:,} pounds", f"{spell_number(pounds)} pounds")[way % 3]
    if slot == "date":
        year, at, number = map(int, value.split("-"))
        month = MONTHS[at - 1]
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number not in (11, 12, 13) else 0, "th")
        ways = (f"{number} {month} {year}", f"{month} {number}, {year}", f"the {number}{ending} of {month} {year}")
        return ways[way % 3]
    return value


def spell_number(number: int) -> str:
    """A number below 10,000 in words."""
    for unit, name, join in ((1_000, "thousand", " "), (100, "hundred", " and ")):
        if number >= unit:
            rest = number % unit
            joined = " and " if 0 < rest < 100 else join
            return f"{SMALL[number // unit]} {name}" + (f"{joined}{spell_number(rest)}" if rest else "")
    if number < 20:
        return SMALL[number]
    return TENS[number // 10] + (f"-{SMALL[number % 10]}" if number % 10 else "")


def read_prose(series: str, number: int, length: int) -> str:
    """About so many characters of a novel or, every second time, of a meeting, from a place that is drawn."""
    if number % 2:
        meetings = read_meetings(series)
        text = meetings[rank(series, "meeting", number) % len(meetings)]
    else:
        novel = pick(("gods_of_mars.txt", "christmas_carol.txt"), series, "novel", number)
        text = (DATA / "novels" / novel).read_text(encoding="utf-8")
    margin = 2_000 if number % 2 == 0 else 0  # what an e-book says of itself
    start = margin + rank(series, "start", number) % max(1, len(text) - length - 21_000 - margin)
    start = text.index("\n", start) + 1
    return text[start : start + length].rsplit("\n", 1)[0].strip()


@cache
def read_meetings(series: str) -> list[str]:
    return [each.text for each in read_dataset("qmsum", DATA / MEETINGS[series]).documents]


def plant(name: str, prose: str, sentences: Sequence[str]) -> str:
    """The prose with the sentences behind sentences of its own, in an order that is drawn."""
    ends = [each.end for each in split_sentences(prose)]
    places = sorted((pick(ends, name, each, at), rank(name, "order", each), each) for at, each in enumerate(sentences))
    parts, done = [], 0
    for end, _, sentence in places:
        parts += [prose[done:end], f" {sentence}"]
        done = end
    return "".join(parts) + prose[done:]
