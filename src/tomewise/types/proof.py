"""What an answer states, and what proves it: statements, quotes, coverage.

Below stand answers in words, for a terminal, a notebook, a chat and an agent: each sentence about an answer once, and
the marks in its text as `cut_text` places them.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from tomewise.errors import count_noun
from tomewise.types.nouns import (
    Claim,
    Cost,
    DocumentId,
    Event,
    Evidence,
    FindKind,
    FromSession,
    Lagging,
    Metadata,
    Passage,
    PassageId,
    Reach,
    Scope,
    Support,
)
from tomewise.types.place import Place, describe_source, name_document
from tomewise.types.plain import Noun, describe_object

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

STRENGTHS: tuple[Support, ...] = ("none", "contradicted", "inferred", "quoted")  # of support, the weakest first
PROVED: tuple[Support, ...] = ("inferred", "quoted")  # supports of what is proved
VERIFIED = "verify"  # in place of a system, of a text that was verified
_EXTRACTIVE = "extractive"  # the name of the model that only quotes
_NAMED = 3  # documents in a sentence
_AROUND = 120  # characters that a notebook shows on either side of a quotation
_FOOTNOTE = r"(?<!\\)\[(?=\^\d)"  # it would stand for one of ours
_CODE = r"(?<!`)(?:(`{3,}+)[^`]+\1|(`{1,2}+)(?:[^`\n]|\n(?!\s*\n))+\2)"  # of fewer backticks within a paragraph
_TAG = r"<(?=[a-z/!?])(?!https?://[^\s<>]*>)"
_TARGET = r"(?<=\])(?:\((?!\s*<?https?://)|:)"
# What may begin a tag, a picture, a link or a definition, behind no backslash; and code, in which nothing does.
_HARMFUL = re.compile(rf"{_CODE}|{_FOOTNOTE}|(?<!\\)(?:{_TAG}|!(?=\[)|{_TARGET})", re.IGNORECASE)
_FOOTNOTES = re.compile(f"{_CODE}|{_FOOTNOTE}")
# The same behind backslashes and in code too: a paragraph without these does none, whatever follows.
_RISKY = re.compile(rf"{_TAG}|!\[|{_TARGET}|\[\^\d", re.IGNORECASE)
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_UNSURE = re.compile(r"(?<!\\)\\*+(?:[`<\[\]]|~~~)")  # may do harm once more of its paragraph is written
_SIGNS = frozenset("\\`*_[]<>!")
_DEEPEST = 15  # levels: what a parser of Markdown sees further inside differs


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote(Noun):
    """Words of a document: `document.text[start:end] == text`."""

    document: DocumentId
    """The id of the document."""
    passage: PassageId
    """The id of the passage that holds it."""
    position: int
    """The number of that passage in its document, from 0."""
    start: int
    """The offset of the first quoted character in the document."""
    end: int
    """The offset behind the last one."""
    text: str
    """The words of the document, not of the model."""
    title: str = ""
    """The title of the document; empty without one."""
    place: Place = field(default_factory=Place)
    """Where the quotation begins."""
    before: str = ""
    """What stands before it: of a whole sentence the one before, none beyond a heading; of a hit its line."""
    after: str = ""
    """What stands after it."""

    def __str__(self) -> str:
        return " ".join(f"“{self.text}” ({describe_source(self)})".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Noun):
    """One thing that an answer states, and what proves it."""

    text: str
    """Its words."""
    start: int = 0
    """The offset of its first character in the text of the answer."""
    end: int = 0
    """The offset behind the last one."""
    support: Support = "none"
    """How far its quotes prove it: "quoted" (its words stand in them), "inferred", "contradicted" or "none"."""
    quotes: tuple[Quote, ...] = ()
    """The quotations that were found in a passage."""
    choice: str | None = None
    """The letter of the option that rests on it, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread(Noun):
    """Things of one kind that lie in a scope and are not in an answer."""

    what: str
    """The kind, in the singular."""
    count: int
    """How many; 0 where nobody knows."""
    names: tuple[str, ...] = ()
    """The first few, with the reason of each that has its own."""
    mend: str
    """What takes them in: a command, or what to do."""

    def __str__(self) -> str:
        counted = count_noun(self.count, self.what) if self.count else self.what
        more = ", …" if self.count > len(self.names) else ""
        names = f" ({', '.join(self.names)}{more})" if self.names else ""
        return f"{counted}{names}: {self.mend}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(Noun):
    """How much of what could be read was read."""

    computed: ClassVar[tuple[str, ...]] = ("remark", "all_read")
    passages: int = 0
    """The passages in the scope of the question."""
    read: int = 0
    """How many of them a call of the model was shown to answer."""
    dropped: int = 0
    """How many pieces were found for the answer and had no room in the prompt."""
    mend: str = ""
    """What gives these room, in words; empty where nothing is known."""
    unread: tuple[Unread, ...] = ()
    """What the answer lacks: not read when it was added, not in the memory that answered, in failed steps."""
    compares: bool = False
    """True for a text that was verified, which was compared with what was read."""

    @property
    def all_read(self) -> bool:
        """Whether every passage in the scope was read, nothing dropped, and no text left out when it was added."""
        return 0 < self.passages == self.read and not self.dropped and not self.unread

    @property
    def remark(self) -> str:
        """What could be read and was not, in a sentence; empty where all was."""
        lead = "Not compared with" if self.compares else "Not in this answer"
        return f"{lead}: {'; '.join(map(str, self.unread))}." if self.unread else ""

    def __str__(self) -> str:
        return f"{self.read:,} of {self.passages:,} passages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits(Noun):
    """Every place of documents that has what was looked for."""

    wanted: tuple[str, ...]
    """What was looked for; of a name also the other names that the documents give for it."""
    kind: FindKind
    """How it was looked for."""
    total: int
    """How many places have it."""
    counts: Mapping[str, tuple[tuple[str, int], ...]]
    """How many by `document`, and by `chapter`, `speaker` and `time` where documents have these; the most first."""
    quotes: tuple[Quote, ...]
    """The places in document order, from the first that was asked for; `before` and `after` are of its line."""
    coverage: Coverage
    """What was read: all passages of the scope; and what nobody read when it was added."""

    def __str__(self) -> str:
        documents = len(self.counts.get("document", ()))
        return f"{count_noun(self.total, 'place')} in {count_noun(documents, 'document')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Noun):
    """The result of a question: what it states with what proves that, or what the evidence lacks."""

    computed: ClassVar[tuple[str, ...]] = ("support", "remarks")
    kept_back: ClassVar[tuple[str, ...]] = ("evidence", "events")
    text: str
    """The answer, or the wording of the chosen option; empty if the question was declined, and for `only_quotes`."""
    choice: str | None = None
    """The letter of the chosen option (A, B, ...); None without options."""
    statements: tuple[Statement, ...] = ()
    """What it states, in order, each with its quotes."""
    only_quotes: bool = False
    """Whether quotations stand in place of an answer, since no model wrote one: its statements are the sentences
    nearest to one, the best first, also where the question was declined."""
    evidence: tuple[Evidence, ...] = ()
    """What the answering call was shown, the best first; the prompt has it in the order of the text."""
    resolved: bool = True
    """False if the question was declined."""
    forced: bool = False
    """True if the model had declined and then had to guess."""
    claimed: Claim = "none"
    """How far the evidence holds the answer in the word of the model; `support` is what was found."""
    reach: Reach = "part"
    """What the question asks about in the word of the model. If it asks for all, and not all was read, no statement is
    more than inferred."""
    item: str = ""
    """Of a "list" what one thing is, of a "count" the words that are counted, in the word of the model."""
    missing: str = ""
    """What the evidence lacks, if the question was declined or is answered only partly, and what was not read."""
    dropped_quotes: int = 0
    """How many quotations of the model were found nowhere, so that they are not among its quotes."""
    unfinished: str = ""
    """Why the text ends before its end; empty where it does not."""
    withheld: int = 0
    """How many statements without support are not shown, as `only_supported` wants."""
    derived_quotes: int = 0
    """How many stand only in what was made from passages, such as a summary, and are no quotes."""
    coverage: Coverage = field(default_factory=Coverage)
    """How much of what could be read was read for it."""
    system: str = ""
    """The system that answered, with its settings."""
    model: str = ""
    """The model that answered."""
    events: tuple[Event, ...] = ()
    """What happened on the way, in order."""
    cost: Cost = field(default_factory=Cost)
    """What it cost."""
    session: FromSession | None = None
    """What it took from its session; None without one."""
    lagging: Lagging | None = None
    """What the memory that answered had yet to take in; None if it was up to date."""
    within: Scope | None = None
    """What the question was narrowed to; None for the whole tome."""
    named: tuple[str, ...] = ()
    """What the question names that stands nowhere else, so that it was narrowed to where it stands."""
    nearest: tuple[Passage, ...] = ()
    """Where the question was declined, the passages nearest to it."""
    trace: int | None = field(default=None, compare=False)
    """The number of its trace, if the tome keeps one."""
    kept: bool = field(default=True, compare=False)
    """False if a reply, the trace or the turn of the session could not be written, such as on a full disk.

    True in a tome that is only read, where none is written."""

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """The quotes of all statements, each once, as `[1]`, `[2]` ... name them; none if the question was declined."""
        return tuple(list_quotes(self)) if self.resolved else ()

    @property
    def words(self) -> str:
        """Its text; of `only_quotes` the quoted sentences, a line each, for what compares words."""
        return "\n".join(each.text for each in self.statements) if self.only_quotes else self.text

    @property
    def is_settled(self) -> bool:
        """Whether it answers, and is proved, or claimed in full with a quotation that does not contradict it."""
        if not self.resolved or self.claimed == "partly" or self.support == "contradicted":
            return False
        return self.support in PROVED or (self.claimed == "full" and bool(self.quotes))

    @property
    def asks_for_all(self) -> bool:
        """Whether only the whole text holds the answer: the question asks for all of something, or how many."""
        return self.reach != "part"

    @property
    def support(self) -> Support:
        """The weakest support of its statements; "none" without one, or if the question was declined."""
        strengths = [STRENGTHS.index(statement.support) for statement in self.statements if self.resolved]
        return STRENGTHS[min(strengths, default=0)]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of it besides its text, in sentences."""
        return tuple(_list_remarks(self))

    def __repr__(self) -> str:
        counts = {"quotes": len(self.quotes), "evidence": len(self.evidence), "events": len(self.events)}
        outcome = {"support": self.support} if self.resolved else {"resolved": False, "missing": self.missing}
        return describe_object(self, self.text, **outcome, **counts, system=self.system, model=self.model)

    def __str__(self) -> str:
        return write_answer(self)

    def to_markdown(self) -> str:
        """The answer with a footnote for each quote, and what it quotes from where metadata names author or year."""
        sources = ((source.document, piece.metadata) for piece in self.evidence for source in piece.origins)
        return write_markdown(self, {document: metadata for document, metadata in sources if metadata})

    def _repr_html_(self) -> str:
        return write_html(self)


def _list_remarks(answer: Answer) -> list[str]:
    unproved = count_noun(answer.withheld, "statement")
    withheld = f"Not shown: {unproved} without support." if answer.withheld else ""
    if is_verified(answer):
        return [count_supports(answer), *filter(None, (answer.missing, withheld))]
    # Where models are set for other roles, the name holds these.
    no_model = "No model is set" if answer.model in ("", _EXTRACTIVE) else "No model answers"
    if answer.only_quotes:
        missing = f" ({answer.missing})" if answer.missing else ""
        nothing = f"{no_model}, and nothing here seems to answer this{missing}."
        return [f"{no_model}: these sentences are nearest to an answer." if answer.resolved else nothing]
    if not answer.resolved and answer.model == _EXTRACTIVE:
        return [f"{no_model}: `tome models` lists those that can answer."]
    is_guess = answer.claimed == "none"
    dropped, derived = (count_noun(each, "quotation") for each in (answer.dropped_quotes, answer.derived_quotes))
    coverage, is_whole = answer.coverage, answer.claimed != "partly" and answer.support in PROVED
    lacking = f"{count_noun(coverage.dropped, 'piece')} of what was found had no room in the prompt"
    lacks_text = answer.asks_for_all and coverage.read < coverage.passages
    names = " and ".join(f"“{name}”" for name in answer.named) + (" stand" if answer.named[1:] else " stands")
    read = "were" if answer.within and len(answer.within.documents or ()) > 1 else "was"
    remarks = {
        f"Only {answer.within} {read} read, since {names} nowhere else.": answer.named,
        f"The question asks for all, and {coverage} were read.": lacks_text,
        "The evidence supports only a part of this answer.": answer.resolved and answer.claimed == "partly",
        "A guess: no evidence supports it.": answer.resolved and is_guess,
        "No quotation was found that supports it.": answer.resolved
        and not (is_guess or answer.quotes or answer.support == "quoted"),  # nothing quotes a word that stands nowhere
        "The model would have declined; it was forced to answer.": answer.resolved and answer.forced,
        "The model was asked for a guess too, and gave none.": not answer.resolved and answer.forced,
        f"The answer is unfinished: {answer.unfinished}.": answer.unfinished,
        withheld: withheld,
        f"Dropped: {dropped} of the model, found in no passage.": answer.dropped_quotes,
        f"Not cited: {derived} from summaries, found in no passage.": answer.derived_quotes,
        f"{': '.join(filter(None, (lacking, coverage.mend)))}.": coverage.dropped and not is_whole,
    }
    return [remark for remark, holds in remarks.items() if holds]


def is_verified(answer: Answer) -> bool:
    """Whether the text is not an answer, but one that was verified (see `Tome.verify`)."""
    return answer.system == VERIFIED


def count_supports(answer: Answer) -> str:
    """How many statements have each support: "4 statements: 2 quoted, 1 inferred, 0 contradicted, 1 unsupported"."""
    counts = Counter(statement.support for statement in answer.statements)
    named = (f"{counts[support]:,} {name_support(support)}" for support in reversed(STRENGTHS))
    return f"{count_noun(counts.total(), 'statement')}: {', '.join(named)}"


def name_support(support: Support) -> str:
    """The word for it that people read."""
    return "unsupported" if support == "none" else support


def list_quotes(answer: Answer) -> list[Quote]:
    """The quotes of all statements, each once, in the order of their numbers; of a declined question too."""
    return list(dict.fromkeys(quote for statement in answer.statements for quote in statement.quotes))


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text of an answer: a statement, or what stands between statements."""

    text: str
    """Its words. All pieces joined are the text of the answer."""
    numbers: tuple[int, ...] = ()
    """Its quotes, as `list_quotes` counts them from 1."""
    support: Support | None = None
    """None between statements."""
    gap: str = ""
    """What keeps its mark from what follows, with which it would be a link."""

    def mark(self, sign: str = "[{}]") -> str:
        """What is written right behind it: ` [1][2]`, ` [unsupported]`, ` [contradicted by 3]`; empty for nothing."""
        names = [sign.format(number) for number in self.numbers]
        if self.support == "none":  # what the model quotes proves nothing
            names.append(" [unsupported]" if names else "[unsupported]")
        elif self.support == "contradicted":
            names = [f"[contradicted by {', '.join(map(str, self.numbers) if sign == '[{}]' else names)}]"]
        before = "\n" if self.text.endswith(("```", "~~~")) else " "
        return f"{before}{''.join(names)}{self.gap}" if names else ""


def cut_text(answer: Answer) -> list[Piece]:
    """The text of the answer in pieces, so that the mark of each stands right behind it: of a row, in its last cell.

    A statement that is not in the text gives an empty piece at the end. Quotations in place of a text give none.
    """
    if answer.only_quotes:
        return []
    text, at = answer.text, 0
    numbers = {quote: number for number, quote in enumerate(list_quotes(answer), start=1)}
    pieces, lost = [], []
    for statement in answer.statements:
        own = tuple(dict.fromkeys(numbers[quote] for quote in statement.quotes))
        words, start = statement.text.rstrip(), statement.start
        if start < at or not text.startswith(words, start):  # the text was changed on its way, as paths are hidden
            start = text.find(words, at)
        if start < 0 or not words:
            lost.append(Piece("", own, statement.support))
            continue
        is_row = words.lstrip().startswith("|") and words.endswith("|") and not words.endswith("\\|")
        end = start + len(words[:-1].rstrip() if is_row else words)
        gap = " " if text.startswith(("(", "[", ":"), end) else ""
        pieces += [Piece(text[at:start]), Piece(text[start:end], own, statement.support, gap)]
        at = end
    return [piece for piece in (*pieces, Piece(text[at:]), *dict.fromkeys(lost)) if piece.text or piece.mark()]


def write_marked(answer: Answer) -> str:
    """The text of the answer with its marks."""
    return join_pieces(cut_text(answer)).strip()


def quote_words(answer: Answer) -> str:
    """The text of the answer; where quotations stand in place of one, these, each between quotation marks."""
    return "\n".join(f"“{each.text}”" for each in answer.statements) if answer.only_quotes else answer.text


def join_pieces(pieces: Iterable[Piece], sign: str = "[{}]") -> str:
    """The pieces with their marks."""
    return "".join(piece.text + piece.mark(sign) for piece in pieces)


def write_answer(answer: Answer) -> str:
    """The answer with `[1]` for each quote, what a reader must know of it, and the quotes with their places."""
    quotes = list_quotes(answer)
    text = write_marked(answer) or decline(answer)
    lines = (f"[{number}] {quote}" for number, quote in enumerate(quotes, start=1))
    return "\n".join(filter(None, [text, *answer.remarks, answer.coverage.remark, *lines]))


def decline(answer: Answer) -> str:
    """The sentence that a question was declined, and what is missing for an answer; empty for a verified text, and for
    quotations, of which a remark says it."""
    if is_verified(answer) or answer.only_quotes:
        return ""
    missing = f": {answer.missing}" if answer.missing else ""
    return f"The memory does not hold the answer{missing}".rstrip(".") + "."


def list_lag(lagging: Lagging | None) -> Iterator[Unread]:
    """What memory has yet to take in."""
    if lagging:
        build = f"`tome build --system {shlex.quote(lagging.system)}`" if lagging.system else "`tome build`"
        names = tuple(map(name_document, lagging.documents[:_NAMED]))
        near = "; one of the passages nearest to the question is there" if lagging.nearer else ""
        if lagging.count:
            yield Unread(
                what="new document", count=lagging.count, names=names, mend=f"{build} takes in what is new{near}"
            )
        if lagging.removed:
            yield Unread(what="what was made with removed documents", count=0, mend=f"{build} makes it again")


def describe_build(lagging: Lagging) -> str:
    """What a build would use that brings memory up to date."""
    calls, dollars = lagging.cost.calls, lagging.cost.dollars
    price = f" (${dollars:.4f})" if dollars else ""
    parts = [f"about {count_noun(calls, 'call')}{price}"] if calls or not lagging.unpriced else []
    parts += [f"what `--estimate` says for {', '.join(lagging.unpriced)}"] if lagging.unpriced else []
    return " and ".join(parts)


# ---------------------------------------------------------------- Markdown, for a chat and for copying


def write_markdown(
    answer: Answer, metadata: Mapping[DocumentId, Metadata], link: Callable[[Quote], str] | None = None
) -> str:
    """The answer with a footnote for each quote, with its `link`, and the documents whose author or year is known."""
    quotes = list_quotes(answer)
    text = join_pieces(escape_pieces(cut_text(answer) or [Piece(decline(answer))]), "[^{}]")
    quoted, notes = [], []
    for number, quote in enumerate(quotes, start=1):  # “words” (place) would be read as an address with its title
        note = f"In {describe_source(quote)}: “{quote.text}”" + (f" <{link(quote)}>" if link else "")
        notes.append(f"[^{number}]: {escape_markdown(' '.join(note.split()))}")
        if answer.only_quotes:  # a footnote to which nothing refers is not shown
            pieces = escape_pieces([Piece(" ".join(quote.text.split()), (number,))])
            quoted.append(f"> {join_pieces(pieces, '[^{}]')}")
    works = dict.fromkeys(_write_work(quote, metadata.get(quote.document, {})) for quote in quotes)
    listed = "\n".join(escape_markdown(f"- {' '.join(work.split())}") for work in works if work)
    remarks = map(escape_markdown, [*answer.remarks, answer.coverage.remark])
    return "\n\n".join(filter(None, [text.strip("\n"), *remarks, *quoted, listed, *notes]))


def _write_work(quote: Quote, metadata: Metadata) -> str:
    """Author, title and year of a document; empty without author and year."""
    author, year = metadata.get("author", ""), str(metadata.get("year") or metadata.get("date", ""))[:4]
    authors = ", ".join(map(str, author)) if isinstance(author, list | tuple) else str(author)
    title = quote.title or name_document(quote.document)
    return ". ".join(filter(None, (authors, title, year))) if authors or year else ""


def escape_markdown(text: str) -> str:
    """The text without pictures, HTML, definitions, or links that do not lead to http(s): these are shown as written.

    Text without these comes back unchanged.
    """
    return "".join(_escape_signs(text))


def escape_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces of a text, escaped as one text. Where a mark would do harm inside, all stand at the end."""
    given = list(pieces)
    signs = iter(_escape_signs("".join(piece.text for piece in given)))
    escaped = [replace(piece, text="".join(islice(signs, len(piece.text)))) for piece in given]
    if not _does_harm(join_pieces(escaped)):
        return escaped
    marks = [replace(piece, text="") for piece in given]
    text = "".join(piece.text for piece in escaped)
    if _does_harm(join_pieces([Piece(text), *marks])):  # as "[x]:" does before any mark
        text = "".join(_escape_all("".join(piece.text for piece in given)))
    return [Piece(text), *marks]


def count_safe(text: str) -> int:
    """How many characters at its beginning no escaping changes, whatever follows them."""
    risky = _RISKY.search(text)
    ends = [found.end() for found in _PARAGRAPH_END.finditer(text, 0, risky.start() if risky else len(text))]
    unsure = _UNSURE.search(text, ends[-1] if ends else 0)
    return unsure.start() if unsure else len(text)


def _escape_signs(text: str) -> list[str]:
    """Each sign of the text, with a backslash where it needs one."""
    for harmful in (_FOOTNOTES, _HARMFUL):
        signs = list(text)
        for found in harmful.finditer(text):
            if found[0][0] != "`":
                signs[found.start()] = _escape_sign(found[0][0])
        if not _does_harm("".join(signs)):
            return signs
    return _escape_all(text)


def _escape_all(text: str) -> list[str]:
    """Each sign, with a backslash from the first on that may do harm."""
    safe = count_safe(text)
    return [*text[:safe], *(_escape_sign(sign) if sign in _SIGNS else sign for sign in text[safe:])]


def _escape_sign(sign: str) -> str:
    return "&lt;" if sign == "<" else f"\\{sign}"  # some parsers know no backslash before a tag


def _does_harm(text: str) -> bool:
    if "<" not in text and "]" not in text:
        return False
    if max(accumulate((sign == "[") - (sign == "]") for sign in text)) > _DEEPEST:
        return True
    for parser in _make_parsers():
        found: dict[str, Any] = {}
        tokens = parser.parse(text, found)
        if "references" in found or any(map(_is_harmful, chain(tokens, *(token.children or () for token in tokens)))):
            return True
    return False


def _is_harmful(token: Token) -> bool:
    address = str(token.attrGet("href")) if token.type == "link_open" else "https://"
    is_refused = token.type in ("html_block", "html_inline", "image") or token.level > _DEEPEST
    return is_refused or not address.lower().startswith(("http://", "https://"))


@cache
def _make_parsers() -> tuple[MarkdownIt, MarkdownIt]:
    """Parsers that see every link; the second knows tables, whose cells cut code in two."""
    from markdown_it import MarkdownIt  # late, since few processes write Markdown

    parsers = MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table")
    for parser in parsers:
        parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parsers


# ---------------------------------------------------------------- HTML, for a notebook


def write_html(answer: Answer) -> str:
    """The answer as HTML, with each quotation marked in the text around it. Every text is escaped."""
    from markdown_it import MarkdownIt  # late: see `_make_parsers`

    remarks = "".join(f"<p>{escape(each)}</p>" for each in [*answer.remarks, answer.coverage.remark] if each)
    choices = {quote: statement.choice for statement in answer.statements for quote in statement.quotes}
    lines = "".join(f"<li>{_write_quote(quote, choices[quote], answer)}</li>" for quote in list_quotes(answer))
    listed = f"<ol>{lines}</ol>" if lines else ""
    origin = filter(None, (answer.system, answer.model, count_noun(answer.cost.calls, "call")))
    choice = f"{answer.choice}. " if answer.choice and answer.text else ""
    pieces = [Piece(choice), *(cut_text(answer) or [Piece(decline(answer))])]
    text = join_pieces(escape_pieces(pieces))
    shown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image").render(text)
    is_partial = answer.missing and answer.resolved and text and not is_verified(answer)
    missing = f"<p>Missing: {escape(answer.missing)}</p>" if is_partial else ""
    return f"<div>{shown}{missing}{remarks}{listed}<p><small>{escape(' · '.join(origin))}</small></p></div>"


def _write_quote(quote: Quote, choice: str | None, answer: Answer) -> str:
    where = f"<small>{escape(describe_source(quote))}</small>"
    if not answer.only_quotes:
        before, after = _find_surroundings(quote, answer)
        return f"{escape(before)}<mark>{escape(quote.text)}</mark>{escape(after)} {where}"
    option = f" → {escape(choice)}" if choice else ""
    marked = f"<mark>{escape(quote.text)}</mark>{option}"
    return " ".join(filter(None, (escape(quote.before), marked, escape(quote.after), where)))


def _find_surroundings(quote: Quote, answer: Answer) -> tuple[str, str]:
    """What stands before and after the quotation in the passage that it is from, if the answer holds its text."""
    for piece in answer.evidence:
        if piece.id == quote.passage and quote.text in piece.text:
            before, _, after = piece.text.partition(quote.text)
            start = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
            end = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
            return start, end
    return "", ""
