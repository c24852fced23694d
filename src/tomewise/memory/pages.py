"""Pages: runs of passages that end where the text pauses, each with its gist (ReadAgent, sections 3.1 and 3.2).

Lee, Chen, Furuta, Canny and Fischer, "A Human-Inspired Reading Agent with Gist Memory of Very Long Contexts", 2024
(arXiv 2402.09727).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from tomewise.calls import CallCount
from tomewise.errors import UsageError
from tomewise.language.roles import SHORTEN, ShortenIn, ShortenOut
from tomewise.language.roles.memory_roles import estimate_words
from tomewise.language.wrapped import join_names
from tomewise.memory.leading import find_leads
from tomewise.memory.mapped import DocumentLayer, PlanResult, Window
from tomewise.memory.token_estimates import Typical
from tomewise.store.contract import Store
from tomewise.types import DocumentId, Embedder, LanguageModel, Passage, content_id

NAME = "pages"
WORDS = 600  # of a page at most, as for QuALITY in the paper
_LEAST = 280 / 600  # of that many words must come before a pause, as for QuALITY in the paper
_CLOSING = "\"'”’)]»"
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def cut_pages(passages: Sequence[Passage], gaps: Sequence[str], words: int) -> list[range]:
    """Cut the passages of one document, in order, into pages of at most `words` words, by estimate.

    A page pauses at the best place behind its first passages that have 280/600 of the words: before a new chapter, else
    at a blank line, else at the end of a sentence; of equally good places at the last one. `gaps` are the texts between
    a passage and the next one. A passage that is longer than a page is a page. Deviation: the paper asks a model for
    each pause.
    """
    ends = [0, *accumulate(estimate_words(passage.text) for passage in passages)]
    pauses = [*map(_rate_pause, pairwise(passages), gaps), 0]
    pages, start, enough = list[range](), 0, _LEAST * words
    while start < len(passages):
        most = next((end for end in range(len(passages), start, -1) if ends[end] - ends[start] <= words), start + 1)
        least = next(end for end in range(start + 1, most + 1) if end == most or ends[end] - ends[start] >= enough)
        stop = most
        if most < len(passages):
            stop = max(range(least, most + 1), key=lambda end: (pauses[end - 1], end))
        pages.append(range(start, stop))
        start = stop
    return pages


def _rate_pause(pair: tuple[Passage, Passage], gap: str) -> int:
    """How good a pause between two passages is, from 0 to 3."""
    before, after = pair
    if before.place.chapter != after.place.chapter or after.text.lstrip().startswith("#"):
        return 3
    if "\n" in gap.replace("\r", "").partition("\n")[2]:
        return 2
    return int(before.text.rstrip().rstrip(_CLOSING).endswith(_ENDS))


class PagesLayer(DocumentLayer[ShortenIn, ShortenOut]):
    """One gist for each page, at the cost of one call; a pure function of each document. `words` bounds a page.

    Gists are at most a fifth as long as their pages; the paper measures about that for QuALITY. The passage before a
    page is shown with it, so that "he" is known. Gists have vectors, for texts whose gists do not all fit into the
    model's window.
    """

    kind = "gist"
    role = SHORTEN
    label = "pages shortened"
    typical = Typical(12, 0.2)
    calls = CallCount("1 a page, at most 1 a passage", 1)

    def __init__(self, store: Store, model: LanguageModel, embedder: Embedder, *, words: int = WORDS) -> None:
        if words < 1:
            raise UsageError(f"pages of {words} words hold nothing: give 1 or more")
        self.name = NAME if words == WORDS else f"{NAME}:words={words}"
        super().__init__(store, model, embedder)
        self._words = words

    def make_windows(self, document: DocumentId, passages: Mapping[int, Passage]) -> Iterator[tuple[Window, ShortenIn]]:
        """The pages of a document."""
        keys, pieces = list(passages), list(passages.values())
        whole = self._store.document(document).text
        spans = cut_pages(pieces, [whole[left.end : right.start] for left, right in pairwise(pieces)], self._words)
        leads = find_leads(self._store, [pieces[span.start] for span in spans])
        for position, span in enumerate(spans):
            page = pieces[span.start : span.stop]
            text = "\n".join(passage.text for passage in page)
            role_input = ShortenIn(text=text, title=page[0].title, before=leads[page[0].id])
            ids = tuple(passage.id for passage in page)
            node = content_id("pg", self.name, *role_input.grounds, *ids)
            covered = tuple(keys[span.start : span.stop])
            yield Window(node=node, document=document, position=position, sources=ids, keys=covered), role_input

    def read_text(self, reply: ShortenOut) -> str:
        """The gist of a page."""
        return reply.gist

    def make_record(self, result: PlanResult[Window, ShortenIn, ShortenOut]) -> dict[str, Any]:
        """With the size of the pages."""
        return {"model": join_names(self._model, self.roles), "words": self._words}
