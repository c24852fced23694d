"""Answers in words, for a terminal, a notebook, a chat and an agent: each sentence about an answer stands here once."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tomewise.place import describe_source, name_document
from tomewise.types.nouns import Answer, Lagging, Quote, Scalar, Scope

_EXTRACTIVE = "extractive"  # the name of the model that only quotes
_NAMED = 3  # documents in a sentence
_AROUND = 120  # characters that a notebook shows on either side of a quotation


def list_remarks(answer: Answer) -> list[str]:
    """What a reader must know of an answer besides its text, in sentences."""
    # Where models are set for other roles, the name holds these.
    no_model = "No model is set" if answer.model in ("", _EXTRACTIVE) else "No model answers"
    if answer.only_quotes and answer.statements:
        missing = f" ({answer.missing})" if answer.missing else ""
        nothing = f"{no_model}, and nothing here seems to answer this{missing}."
        return [f"{no_model}: these sentences are nearest to an answer." if answer.resolved else nothing]
    if not answer.resolved and answer.model == _EXTRACTIVE:
        return [f"{no_model}: `tome models` lists those that can answer."]
    is_guess = answer.claimed == "none"
    remarks = {
        "The evidence supports only a part of this answer.": answer.resolved and answer.claimed == "partly",
        "A guess: no evidence supports it.": answer.resolved and is_guess,
        "No quotation was found that supports it.": answer.resolved and not is_guess and not answer.quotes,
        "The model would have declined; it was forced to answer.": answer.resolved and answer.forced,
        "The model was asked for a guess too, and gave none.": not answer.resolved and answer.forced,
        f"{answer.dropped_quotes} quotation(s) of the model are in no passage and were dropped.": answer.dropped_quotes,
        f"{answer.derived_quotes} quotation(s) are from summaries and in no passage: not cited.": answer.derived_quotes,
    }
    return [remark for remark, holds in remarks.items() if holds]


def write_answer(answer: Answer) -> str:
    """The answer with `[1]` for each quote, what a reader must know of it, and the quotes with their places."""
    quotes = list(dict.fromkeys(quote for statement in answer.statements for quote in statement.quotes))
    marks = "".join(f" [{number}]" for number in range(1, len(quotes) + 1)) if answer.resolved else ""
    text = "" if answer.only_quotes and quotes else answer.text + marks if answer.resolved else decline(answer)
    return "\n".join([*filter(None, [text]), *list_remarks(answer), *_list_quotes(quotes)])


def decline(answer: Answer) -> str:
    """The sentence that a question was declined, and what is missing for an answer."""
    missing = f": {answer.missing}" if answer.missing else ""
    return f"The memory does not hold the answer{missing}".rstrip(".") + "."


def _list_quotes(quotes: list[Quote]) -> Iterator[str]:
    for number, quote in enumerate(quotes, start=1):
        yield f"[{number}] “{' '.join(quote.text.split())}” ({describe_source(quote)})"


def summarize_lag(lagging: Lagging, *, names: bool = True) -> str:
    """What memory has yet to take in, in a sentence or three, with the `names` of the first documents or without."""
    sentences = []
    if lagging.count:
        named = ", ".join(map(name_document, lagging.documents[:_NAMED]))
        named += ", …" if lagging.count > _NAMED else ""
        which = "1 document" if lagging.count == 1 else f"{lagging.count:,} documents"
        sentences.append(f"What was built does not know {which} yet{f': {named}' if names else ''}.")
    if lagging.nearer:
        sentences.append("One of the passages nearest to the question is there.")
    if lagging.removed:
        sentences.append("What was made with removed documents is gone and was not made again.")
    return " ".join(sentences)


def describe_build(lagging: Lagging) -> str:
    """What a build would use that brings memory up to date."""
    calls, dollars = lagging.cost.calls, lagging.cost.dollars
    price = f" (${dollars:.4f})" if dollars else ""
    parts = [f"about {calls:,} call{'' if calls == 1 else 's'}{price}"] if calls or not lagging.unpriced else []
    parts += [f"what `--estimate` says for {', '.join(lagging.unpriced)}"] if lagging.unpriced else []
    return " and ".join(parts)


def describe_scope(scope: Scope) -> str:
    """A scope in one line, for people."""
    facts = []
    if scope.documents is not None:
        names = [name.rstrip("/").rsplit("/", 1)[-1] for name in sorted(scope.documents)]
        facts.append(", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""))
    facts += [f"{test.field}{test.operator}{_write_value(test.value)}" for test in scope.where]
    if scope.entities is not None:
        facts.append(f"entities seen: {len(scope.entities)}")
    if scope.without_entities:
        facts.append(f"entities left out: {len(scope.without_entities)}")
    return ", ".join(facts)


def _write_value(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------- HTML, for a notebook


def write_html(answer: Answer) -> str:
    """The answer as HTML, with each quotation marked in the text around it. Every text is escaped."""
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in list_remarks(answer))
    quotes = [(statement, quote) for statement in answer.statements for quote in statement.quotes]
    lines = "".join(f"<li>{_write_quote(quote, statement.choice, answer)}</li>" for statement, quote in quotes)
    listed = f"<ol>{lines}</ol>" if quotes else ""
    lag = f"<p>{escape(summarize_lag(answer.lagging))}</p>" if answer.lagging else ""
    calls = f"{answer.cost.calls} call{'' if answer.cost.calls == 1 else 's'}"
    origin = f"<p><small>{escape(' · '.join(filter(None, (answer.system, answer.model, calls))))}</small></p>"
    if answer.only_quotes and quotes:
        return f"<div>{remarks}{listed}{lag}{origin}</div>"
    if not answer.resolved:
        missing = answer.missing or "the evidence does not say"
        return f"<div><p><b>Not answered:</b> {escape(missing)}</p>{lag}{origin}</div>"
    choice = f"{escape(answer.choice)}. " if answer.choice else ""
    missing = f"<p>Missing: {escape(answer.missing)}</p>" if answer.missing else ""
    return f"<div><p><b>{choice}{escape(answer.text)}</b></p>{missing}{remarks}{listed}{lag}{origin}</div>"


def _write_quote(quote: Quote, choice: str | None, answer: Answer) -> str:
    where = f"<small>{escape(describe_source(quote))}</small>"
    if not answer.only_quotes:
        before, after = _find_surroundings(quote, answer)
        return f"{escape(before)}<mark>{escape(quote.text)}</mark>{escape(after)} {where}"
    option = f" → {escape(choice)}" if choice else ""
    return f"{escape(quote.before)} <mark>{escape(quote.text)}</mark>{option} {escape(quote.after)} {where}"


def _find_surroundings(quote: Quote, answer: Answer) -> tuple[str, str]:
    """What stands before and after the quotation in the passage that it is from, if the answer holds its text."""
    for piece in answer.evidence:
        if piece.id == quote.passage and quote.text in piece.text:
            before, _, after = piece.text.partition(quote.text)
            start = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
            end = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
            return start, end
    return "", ""
