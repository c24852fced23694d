"""Pages: runs of passages that end at a good place, each with its gist (ReadAgent, sections 3.1 and 3.2).

Lee, Chen, Furuta, Canny and Fischer, "A Human-Inspired Reading Agent with Gist Memory of Very Long Contexts", 2024
(arXiv 2402.09727).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import UsageError
from tomewise.language.per_role import find_name
from tomewise.language.roles import SHORTEN, ShortenIn, ShortenOut
from tomewise.language.roles.reading import estimate_words
from tomewise.memory.ask_each import Replies, ask_each
from tomewise.memory.leading import find_leads
from tomewise.memory.reply_lengths import Typical, estimate_reply_tokens
from tomewise.memory.steps import sum_tokens
from tomewise.types import (
    Change,
    Embedder,
    Estimate,
    LanguageModel,
    LayerReport,
    Node,
    NodeId,
    Passage,
    Report,
    content_id,
)

if TYPE_CHECKING:
    from tomewise.store.contract import Store

NAME = "pages"
WORDS = 600  # of a page at most, as for QuALITY in the paper
_LEAST = 280 / 600  # of that many words must come before a pause, as for QuALITY in the paper
_TYPICAL = Typical(12, 0.2)
_CLOSING = "\"'”’)]»"
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def cut_pages(passages: Sequence[Passage], gaps: Sequence[str], words: int) -> list[range]:
    """Cut the passages of one document, in order, into pages of at most `words` words.

    A page pauses at the best place behind its first passages that have 280/600 of the words: before a new chapter, else
    at a blank line, else at the end of a sentence; of equally good places at the last one. `gaps` are the texts between
    a passage and the next one. A passage that is longer than a page is a page. Deviation: the paper asks a model for
    each pause.
    """
    ends = [0, *accumulate(estimate_words(passage.text) for passage in passages)]
    pauses = [*map(_rate_pause, pairwise(passages), gaps), 0]
    cuts, start = list[range](), 0
    while start < len(passages):
        most = next((end for end in range(len(passages), start, -1) if ends[end] - ends[start] <= words), start + 1)
        least = next(end for end in range(start + 1, most + 1) if end == most or _reaches(ends, start, end, words))
        stop = most
        if most < len(passages):
            stop = max(range(least, most + 1), key=lambda end: (pauses[end - 1], end))
        cuts.append(range(start, stop))
        start = stop
    return cuts


def _reaches(ends: Sequence[int], start: int, end: int, words: int) -> bool:
    return ends[end] - ends[start] >= _LEAST * words


def _rate_pause(pair: tuple[Passage, Passage], gap: str) -> int:
    """How good a pause between two passages is, from 0 to 3."""
    before, after = pair
    if before.place.chapter != after.place.chapter or after.text.lstrip().startswith("#"):
        return 3
    if "\n" in gap.replace("\r", "").partition("\n")[2]:
        return 2
    return int(before.text.rstrip().rstrip(_CLOSING).endswith(_ENDS))


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that is to become a node; `position` counts from 0 within its document."""

    id: NodeId
    document: str
    position: int
    passages: tuple[Passage, ...]
    given: ShortenIn


@dataclass(frozen=True, slots=True)
class _Base:
    """The pages of the documents with passages to take in, the keys of these passages, and the pages that exist."""

    pages: Sequence[_Page]
    keys: Mapping[NodeId, int]
    existing: Mapping[int, Node]

    @property
    def due(self) -> list[_Page]:
        existing = {node.id for node in self.existing.values()}
        return [page for page in self.pages if page.id not in existing]


class PagesLayer:
    """One gist for each page, at the cost of one call; a pure function of each document. `words` bounds a page.

    Gists are at most a fifth as long as their pages; the paper measures about that for QuALITY. The passage before a
    page is shown with it, so that "he" is known. The next build asks again for a page whose call failed. Gists have
    vectors, for texts whose gists do not all fit into the model's window.
    """

    kind = "gist"
    needs = ("passages",)
    calls = CallCount("1 a page, at most 1 a passage", 1)

    def __init__(self, store: Store, model: LanguageModel, embedder: Embedder, *, words: int = WORDS) -> None:
        if words < 1:
            raise UsageError(f"pages of {words} words hold nothing: give 1 or more")
        self.name = NAME if words == WORDS else f"{NAME}:words={words}"
        self._store = store
        self._model = model
        self._embedder = embedder
        self._words = words

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.name,)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Shorten the missing pages of every document that has passages to take in."""
        base = await run_in_thread(self._load, change)
        inputs = {page.id: page.given for page in base.due}
        replies = await ask_each(self._model, SHORTEN, inputs, report, "pages shortened")
        return await run_in_thread(self._commit, base, replies)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each page that does not exist yet."""
        base = await run_in_thread(self._load, change)
        inputs = list({page.given.grounds: page.given for page in base.due}.values())
        texts = [given.text for given in inputs]
        return Estimate(
            layer=self.name,
            model=find_name(self._model, SHORTEN),
            calls=len(inputs),
            input_tokens=await sum_tokens(inputs, partial(self._model.reckon, SHORTEN)),
            output_tokens=await estimate_reply_tokens(self._store, self._model, SHORTEN, _TYPICAL, inputs, texts),
        )

    def _load(self, change: Change) -> _Base:
        touched = {passage.document for passage in self._store.passages(change.added).values()}
        found = self._store.passages_of(sorted(touched))
        keys = {passage.id: key for key, passage in found.items()}
        # In document order, so each document is read once, however many there are.
        by_document = groupby(found.values(), key=lambda passage: passage.document)
        pages = [page for document, passages in by_document for page in self._cut(document, list(passages))]
        above = self._store.find_derived(found, f"made-of:{self.name}").values()
        return _Base(pages, keys, self._store.nodes_at(sorted({key for parents in above for key in parents})))

    def _cut(self, document: str, passages: Sequence[Passage]) -> Iterator[_Page]:
        """The pages of one document."""
        text = self._store.document(document).text
        gaps = [text[left.end : right.start] for left, right in pairwise(passages)]
        cuts = cut_pages(passages, gaps, self._words)
        leads = find_leads(self._store, [passages[cut.start] for cut in cuts])
        for position, cut in enumerate(cuts):
            own = tuple(passages[cut.start : cut.stop])
            given = ShortenIn(text=join_page(own), title=own[0].title, before=leads[own[0].id])
            node = content_id("pg", self.name, *given.grounds, *(passage.id for passage in own))
            yield _Page(node, document, position, own, given)

    def _make_node(self, page: _Page, reply: ShortenOut) -> Node:
        return Node(
            id=page.id,
            layer=self.name,
            text=reply.gist,
            sources=tuple(passage.id for passage in page.passages),
            position=page.position,
            data={"document": page.document},
        )

    def _commit(self, base: _Base, replies: Replies[NodeId, ShortenOut]) -> LayerReport:
        """Write new pages, and remove those that the current cut does not contain."""
        nodes = [self._make_node(page, replies[page.id]) for page in base.due if page.id in replies]
        current = {page.id for page in base.pages}
        stale = [key for key, node in base.existing.items() if node.id not in current]
        vectors = self._embedder.embed([node.text for node in nodes])
        failed = {
            base.keys[passage.id]: reason
            for page in base.pages
            if (reason := replies.failed.get(page.id)) is not None
            for passage in page.passages
        }
        with self._store.write() as writing:
            writing.remove_nodes(stale)
            keys = writing.put_nodes(nodes)
            writing.put_vectors(self.name, [keys[node.id] for node in nodes], vectors)
            writing.record_intake(self.name, [key for key in base.keys.values() if key not in failed], failed)
            writing.record_build(self.name, {"model": find_name(self._model, SHORTEN), "words": self._words})
        return LayerReport(layer=self.name, added=len(nodes), removed=len(stale), failed=failed)


def join_page(passages: Sequence[Passage]) -> str:
    """The text of a page."""
    return "\n".join(passage.text for passage in passages)
