// The text of a document in parts: quotations are highlighted, and places of passages stand beside them.
// Offsets of the server count characters (code points); JavaScript counts UTF-16 units.
import { Button, ErrorNotice, Head, Loading, Missing, Notice, count, formatCount, formatPlace, html, link, linkSpan, useEffect, useGet, useKeys, useLayoutEffect, useMemo, useRef, useState, useStored } from "./parts.js";
import { listQuotes } from "./answer.js";
import { get, tomePath } from "./api.js";
import { Markdown } from "./markdown.js";

const PART = 12000; // characters in one request
const BEFORE = 3000; // characters that are read before a quotation
const MOST_PARTS = 6; // in the page at once
const MARKDOWN = /\.(md|markdown|docx|pptx|html?|xhtml|epub|odt|ipynb)$/i; // what is written as Markdown, or is read as such

/** The UTF-16 unit at which the text has so many characters. */
export function findUnit(text, characters) {
  if (!/[\ud800-\udbff]/.test(text)) return Math.min(characters, text.length);
  let unit = 0;
  for (let passed = 0; passed < characters && unit < text.length; passed += 1) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  return unit;
}

/**
 * A part of the text as pieces, cut where a quotation begins or ends and where a passage has another place than the one before:
 * `{start, text, place, mark}`; `mark` is "", "other", "current", or "at" for what follows a place that is no quotation.
 */
export function cutPieces(part, spans, current) {
  const inside = (place) => place > part.start && place < part.end;
  const places = listPlaces(part.passages, part.start);
  const edges = [...new Set([part.start, ...[...spans.flatMap((span) => [span.start, span.end]), current?.start ?? part.start, ...places.keys()].filter(inside), part.end])].sort((a, b) => a - b);
  const units = edges.map((edge) => findUnit(part.text, edge - part.start));
  return edges.slice(0, -1).map((start, at) => {
    const covers = spans.filter((span) => span.start <= start && span.end > start);
    const mark = covers.includes(current) ? "current" : covers.length ? "other" : current?.end === start && current.start === start ? "at" : "";
    return { start, text: part.text.slice(units[at], units[at + 1]), place: places.get(start), mark };
  });
}

/** By the character at which it begins: each place that differs from the one before. */
function listPlaces(passages, from) {
  const places = new Map();
  let last = null;
  for (const passage of passages) {
    const place = formatPlace(passage.place);
    if (passage.start >= from && place && place !== last) places.set(passage.start, place);
    last = place;
  }
  return places;
}

/** Whether a text is shown as Markdown: by the name of its file; a page of the web, or a text without a file, if it has headings. */
function isMarkdown(id, parts) {
  if (MARKDOWN.test(id)) return true;
  return (/^https?:/.test(id) || !/\.[a-z0-9]{1,8}$/i.test(id)) && parts.some((part) => /^#{1,6} \S/m.test(part.text));
}

/** The view of one document. An address can name a passage alone, whose document and place are then looked up. */
export function DocumentView({ tome, query, navigate }) {
  const { data, error } = useGet(query.passage ? tomePath(tome, "text") : null, { passage: query.passage });
  useEffect(() => { if (data) location.replace(linkSpan(tome, data.document, data.start, data.end)); }, [data]);
  if (!query.passage) return html`<${Reader} tome=${tome} query=${query} navigate=${navigate} />`;
  return html`<${Head} title="Document" /><${Missing} error=${error} title="This passage is not here any more" back=${link(tome)} words=${`See the documents of ${tome}`}>Its document was removed or has changed.</${Missing}>`;
}

function Reader({ tome, query, navigate }) {
  const start = Number(query.start) || 0;
  const end = Number(query.end) || 0;
  const trace = useGet(query.trace ? tomePath(tome, "traces", query.trace) : null);
  const text = useText(tome, query.id, start, end);
  const own = text.id || query.id; // a link may name the document otherwise than the server does now
  const stops = trace.data ? listQuotes(trace.data.answer) : end > start ? [{ document: own, start, end }] : [];
  const at = stops.findIndex((stop) => stop.document === own && stop.start === start && stop.end === end);
  const spans = stops.filter((stop) => stop.document === own);
  const current = at >= 0 ? stops[at] : start ? { start, end: start } : undefined;
  const box = useRef(null);
  const go = (id, place, to = 0) => {
    if (id === own && place === start && to === end) text.show(); // the address stays, so it moves nothing
    else navigate(link(tome, "doc", { id, start: place, end: to, trace: query.trace }));
  };
  const step = (by) => {
    if (!stops.length) return;
    const stop = stops.at(at < 0 ? Math.min(by, 0) : (at + by) % stops.length);
    go(stop.document, stop.start, stop.end);
  };
  useKeys("Document", [["n", "next quotation", () => step(1)], ["p", "previous quotation", () => step(-1)], ["Home", "beginning of the text", () => go(own, 0)], ["End", "end of the text", () => go(own, Math.max(0, text.characters - 1))]]);
  const title = text.title || own?.replace(/\/$/, "").split("/").pop() || "Document";
  const place = current && findPlace(text.parts, current.start);
  const [look, setLook] = useStored("reading", () => "rendered");
  useEffect(() => { if (text.parts.length) showCurrent(box.current, start === 0 && text.parts[0].start === 0); }, [text.turn, query.start, query.end, at, look]);
  const canRender = isMarkdown(own ?? "", text.parts);
  const isMoved = current?.text && text.isHere && readSpan(text.parts, current) !== current.text;
  return html`
    <${Head} title=${title}>${title === own ? null : html`<span class="path">${own}</span>`}</${Head}>
    <${Missing} error=${text.error} title="No document of this name is here" back=${link(tome)} words=${`See the documents of ${tome}`}>It may have been removed, or added under another name.</${Missing}>
    ${text.error ? null : html`<${ErrorNotice} error=${trace.error} />`}
    ${isMoved ? html`<${Notice} kind="warn" title="The document has changed since this answer.">The quotation no longer stands here: “${current.text}”</${Notice}>` : null}
    ${text.error ? null : html`<div class="reader-tools">
      ${stops.length ? html`<div class="actions" role="group" aria-label="Quotations">
        <span class="number">Quotation ${at < 0 ? "–" : at + 1} of ${stops.length}${place ? `, ${place}` : ""}</span>
        <${Button} small aria-label="Previous quotation" onClick=${() => step(-1)}>← <kbd>p</kbd></${Button}>
        <${Button} small aria-label="Next quotation" onClick=${() => step(1)}>→ <kbd>n</kbd></${Button}>
        ${query.trace ? html`<a href=${link(tome, "history", {}, query.trace)}>the answer</a>` : null}</div>` : null}
      ${canRender ? html`<${Button} small kind="quiet" aria-pressed=${look === "written"} onClick=${() => setLook(look === "written" ? "rendered" : "written")}>As written</${Button}>` : null}
      ${text.characters ? html`<label class="reader-place"><span class="soft number">${formatCount(Math.round((100 * (text.parts[0]?.start ?? 0)) / text.characters))} % of ${count(text.characters, "character")}</span>
        <input type="range" min="0" max=${text.characters - 1} step=${Math.max(1, Math.round(text.characters / 200))} value=${start} aria-label="Place in the text" onChange=${(event) => go(own, Number(event.target.value))} /></label>` : null}
    </div>`}
    ${text.parts.length || text.error ? null : html`<${Loading} what="Reading" />`}
    <${Text} box=${box} text=${text} spans=${spans} current=${current} isRendered=${canRender && look !== "written"} />`;
}

function Text({ box, text, spans, current, isRendered }) {
  const { parts, characters } = text;
  const upper = useRef(null);
  const lower = useRef(null);
  useLayoutEffect(() => text.keepPlace(box.current), [parts]);
  useEffect(() => {
    if (!parts.length) return undefined;
    const watch = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => text.more(entry.target === lower.current, box.current)), { rootMargin: "400px" });
    for (const edge of [upper, lower]) if (edge.current) watch.observe(edge.current);
    return () => watch.disconnect();
  }, [parts]);
  if (!parts.length) return null;
  if (!characters) return html`<p class="soft">This document has no text.</p>`;
  return html`<div class="reader" ref=${box}>
    ${parts[0].start > 0 ? html`<p class="reader-edge" ref=${upper}><${Button} small kind="quiet" onClick=${() => text.more(false, box.current)}>Earlier text</${Button}></p>` : null}
    ${isRendered ? html`<div class="reader-text prose" dir="auto"><${Rendered} parts=${parts} spans=${spans} current=${current} /></div>` : html`
    <div class="reader-text written" dir="auto">${parts.map((part) => html`<span key=${part.start} data-start=${part.start}>${cutPieces(part, spans, current).map((piece) => html`
      ${piece.place ? html`<span class="reader-mark" dir="auto">${piece.place}</span>` : null}${piece.mark
        ? html`<${piece.mark === "at" ? "span" : "mark"} key=${piece.start} class=${piece.mark} tabindex=${piece.mark === "other" ? undefined : -1}>${piece.text}</${piece.mark === "at" ? "span" : "mark"}>` : piece.text}`)}</span>`)}</div>`}
    ${parts.at(-1).end < characters ? html`<p class="reader-edge" ref=${lower}><${Button} small kind="quiet" onClick=${() => text.more(true, box.current)}>Later text</${Button}></p>` : null}
  </div>`;
}

/** The parts as Markdown, with quotations marked where they stand; the block that a place is in has the class `holds`. */
function Rendered({ parts, spans, current }) {
  const text = useMemo(() => parts.map((part) => part.text).join(""), [parts]);
  const [{ start: base }] = parts;
  const marks = spans.map((span) => ({ span, from: findUnit(text, span.start - base), to: findUnit(text, span.end - base) }));
  const leaf = (from, to) => {
    const over = marks.filter((mark) => mark.from < to && mark.to > from);
    if (!over.length) return text.slice(from, to);
    const edges = [...new Set([from, ...over.flatMap((mark) => [mark.from, mark.to]).filter((edge) => edge > from && edge < to), to])].sort((a, b) => a - b);
    return edges.slice(0, -1).map((edge, at) => {
      const covers = over.filter((mark) => mark.from <= edge && mark.to > edge);
      const words = text.slice(edge, edges[at + 1]);
      const isCurrent = covers.some((mark) => mark.span === current);
      return covers.length ? html`<mark class=${isCurrent ? "current" : "other"} tabindex=${isCurrent ? -1 : undefined}>${words}</mark>` : words;
    });
  };
  const places = [...listPlaces(parts.flatMap((part) => part.passages), base)];
  const passed = { unit: 0, character: base };
  const move = (unit) => { // blocks come in order, so each character is counted once
    for (; passed.unit < unit; passed.character += 1) passed.unit += text.codePointAt(passed.unit) > 0xffff ? 2 : 1;
    return passed.character;
  };
  const frame = (block, element) => {
    const [start, end] = [move(block.start), move(block.end)];
    let place = "";
    while (places.length && places[0][0] < end) { // of several that begin here, the first
      const [, name] = places.shift();
      place ||= name;
    }
    const isHere = current && current.start < end && Math.max(current.start, current.end - 1) >= start;
    return html`<div key=${start} data-start=${start} class=${isHere ? (current.end > current.start ? "holds" : "at") : ""} tabindex=${isHere ? -1 : undefined}>${place ? html`<span class="reader-mark" dir="auto">${place}</span>` : null}${element}</div>`;
  };
  return html`<${Markdown} text=${text} leaf=${leaf} frame=${frame} top=${1} most=${Infinity} />`;
}

const NO_TEXT = { parts: [], characters: 0, id: "", title: "", error: null };

/**
 * The parts of a text that are here: those around a place, and more at each end when they are wanted. `isHere` says whether they
 * cover the wanted span; `show` brings that span back, and `turn` counts how often it came.
 */
function useText(tome, id, start, end) {
  const [state, setState] = useState({ ...NO_TEXT, key: null, turn: 0 });
  const held = useRef(null); // a part that must not move on the screen while others come and go
  const busy = useRef(null);
  const key = `${tome}\n${id}`;
  const own = state.key === key ? state : NO_TEXT; // the text of another document is not shown while this one is read
  const { parts } = own;
  const isHere = coversSpan(own, start, end);
  const read = (from, to, put) => {
    const reading = new AbortController();
    busy.current?.abort();
    busy.current = reading;
    get(tomePath(tome, "text"), { document: id, start: from, end: to }, { signal: reading.signal })
      .then(put, (error) => error.name !== "AbortError" && setState((now) => ({ ...(now.key === key ? now : { ...NO_TEXT, turn: now.turn, key }), error })))
      .finally(() => { if (busy.current === reading) busy.current = null; });
    return reading;
  };
  const open = () => {
    const from = Math.max(0, start - BEFORE);
    return read(from, Math.max(from + PART, Math.min(end, from + 4 * PART)), (part) => {
      held.current = null;
      setState((now) => ({ parts: [part], characters: part.characters, id: part.document, title: part.title, key, turn: now.turn + 1, error: null }));
    });
  };
  const show = () => (isHere ? setState((now) => ({ ...now, turn: now.turn + 1 })) : open());
  useEffect(() => {
    if (!id || isHere) return undefined;
    const reading = open();
    return () => reading.abort();
  }, [tome, id, start, end]);
  const more = (isLater, box) => {
    const edge = isLater ? parts.at(-1).end : parts[0].start;
    if (busy.current || (isLater ? edge >= own.characters : edge <= 0)) return;
    read(isLater ? edge : Math.max(0, edge - PART), isLater ? edge + PART : edge, (part) => {
      const kept = isLater ? [...parts, part].slice(-MOST_PARTS) : [part, ...parts].slice(0, MOST_PARTS);
      held.current = hold(box, isLater ? kept.at(-2) : kept[1]);
      setState((now) => (now.parts === parts ? { ...now, parts: kept } : now));
    });
  };
  const keepPlace = (box) => {
    if (!held.current || !box) return;
    const [place, top] = held.current;
    held.current = null;
    const part = box.querySelector(`[data-start="${place}"]`);
    if (part) scrollBy({ top: part.getClientRects()[0].top - top, behavior: "instant" });
  };
  return { ...own, turn: state.turn, isHere, show, more, keepPlace };
}

/** What stands at a part, and where on the screen. A block that its edge cuts is another one with the text before it. */
function hold(box, part) {
  const isBlock = box?.querySelector(".prose");
  const found = part && [...(box?.querySelectorAll("[data-start]") ?? [])].find(({ dataset: { start } }) => (isBlock ? Number(start) > part.start : Number(start) === part.start));
  const rect = found?.getClientRects()[0];
  return rect ? [found.dataset.start, rect.top] : null;
}

/** The place that the source states for a character, such as its chapter. */
function findPlace(parts, character) {
  return formatPlace(parts.flatMap((part) => part.passages).find((passage) => passage.start <= character && passage.end > character)?.place);
}

/** Whether the parts hold a whole span, or as much of it as the text still has. */
function coversSpan({ parts, characters }, start, end) {
  return parts.length > 0 && start >= parts[0].start && Math.min(Math.max(start + 1, end), characters) <= parts.at(-1).end;
}

/** The text of a span that is here. */
function readSpan(parts, span) {
  return parts.map((part) => part.text.slice(findUnit(part.text, Math.max(0, span.start - part.start)), findUnit(part.text, Math.max(0, span.end - part.start)))).join("");
}

/** Scrolls to the place that the address names; `isTop` says that this is the beginning, where nothing is marked. */
function showCurrent(box, isTop) {
  const mark = box?.querySelector(".current, .at") ?? box?.querySelector(".holds");
  if (!mark) {
    if (isTop) scrollTo({ top: 0, behavior: "instant" });
    return;
  }
  mark.scrollIntoView({ block: mark.className === "current" ? "center" : "start", behavior: "instant" });
  mark.focus({ preventScroll: true });
}
