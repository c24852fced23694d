// How a question was answered: its events, live or stored, the answer with its quotations, and what it cost.
// Events are shown by the fields that all of them share, so that those of a system from outside are shown too.
import { Fold, Table, count, formatCount, formatPlace, html, linkSpan, nameDocument, shorten, useEffect, useErrorBoundary, useState } from "./parts.js";
import { get, tomePath } from "./api.js";
import { describeEvent } from "./trace_words.js";

const SHORT = 200; // characters of a text in one line
const LISTS = ["evidence", "notes", "pool"]; // of a detail, which are drawn in ways of their own

/**
 * The trace as a list that can be folded. `events` are `{name, step, summary, detail}`; `live` while more come.
 * `waiting` stands in the place of events that are not there yet. A detail is drawn when it is opened, so that long
 * traces stay light. Of a stored trace, `tome` and `number` lead from its evidence into the documents.
 */
export function TraceView({ events, live, open, waiting, onToggle, tome, number, label = live ? "Answering" : "How it was answered" }) {
  const steps = [...new Set(events.map((event) => event.step))];
  const last = events.at(-1);
  return html`<${Fold} class="trace" open=${open} onToggle=${onToggle} summary=${html`<span class="trace-label">${label}</span>
      <span class="trace-last">${live && last ? html`<b>${describeEvent(last)[0]}</b> ${describeEvent(last)[1]}` : events.length ? [steps.length > 1 && count(steps.length, "step"), count(events.length, "event")].filter(Boolean).join(", ") : live ? "waiting for the first event" : waiting === undefined ? "no events" : ""}</span>`}>
    ${waiting}<ol class="events">${events.map((event, place) => html`
      ${steps.length > 1 && event.step !== events[place - 1]?.step ? html`<li class="step" key=${`s${place}`}>${event.step ? `Step ${event.step}` : place ? "At the end" : "At first"}</li>` : null}
      <${EventRow} key=${place} event=${event} tome=${tome} number=${number} />`)}</ol>
  </${Fold}>`;
}

function EventRow({ event, tome, number }) {
  const [open, setOpen] = useState(false);
  const detail = isRecord(event.detail) ? event.detail : {};
  const [word, sentence] = describeEvent(event);
  const line = html`<b class="event-name">${word}</b><span class="event-line" dir="auto">${sentence}</span>`;
  if (!Object.values(detail).some(holdsSomething)) return html`<li class="event"><div class="event-plain">${line}</div></li>`;
  return html`<li class="event"><details onToggle=${(toggle) => toggle.target === toggle.currentTarget && setOpen(toggle.target.open)}><summary>${line}</summary>
    ${open ? html`<div class="event-detail"><${Detail} event=${event} detail=${detail} tome=${tome} number=${number} /></div>` : null}</details></li>`;
}

function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function holdsSomething(value) {
  return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && !value.length);
}

/** The pieces of evidence of an event. Systems from outside write what they like, so other things are left out. */
export function listPieces(event) {
  const evidence = event.detail?.evidence;
  return Array.isArray(evidence) ? evidence.filter(isRecord) : [];
}

/** A detail that cannot be drawn is shown as its JSON, and leaves the rest of the page as it is. */
function Detail({ detail, ...stored }) {
  const [fault] = useErrorBoundary();
  return fault ? html`<pre dir="auto">${JSON.stringify(detail, null, 2)}</pre>` : html`<${DrawnDetail} detail=${detail} ...${stored} />`;
}

/** What was noted and found; the terms of the system's paper stand below, behind "Details". */
function DrawnDetail({ event, detail, tome, number }) {
  const { found, cut, ...rest } = detail;
  const isList = (name) => LISTS.includes(name) && Array.isArray(rest[name]);
  const [evidence, notes, pool] = LISTS.map((name) => (isList(name) ? rest[name].filter(holdsSomething) : []));
  const plain = Object.entries(rest).filter(([name, value]) => holdsSomething(value) && !isList(name));
  const isBare = !evidence.length && !notes.length && !pool.length;
  return html`
    ${typeof cut === "number" ? html`<p class="soft">${describeCut(found, cut)}</p>` : null}
    ${notes.length ? html`<h4>Notes</h4><ul class="notes">${notes.map((note, place) => html`<li key=${place} dir="auto">${typeof note === "string" ? note : html`<${Value} value=${note} />`}</li>`)}</ul>` : null}
    ${pool.length ? html`<h4>Working memory</h4><${Value} value=${pool} />` : null}
    ${evidence.length ? html`<h4>Evidence</h4><${EvidenceList} evidence=${evidence.filter(isRecord)} tome=${tome} number=${number} />` : null}
    <${Fold} open=${isBare} summary="Details"><dl class="facts"><dt>event</dt><dd>${event.name}</dd>${event.summary ? html`<dt>in short</dt><dd dir="auto">${event.summary}</dd>` : null}
      ${plain.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd><${Value} value=${value} /></dd>`)}</dl></${Fold}>`;
}

function describeCut(found, cut) {
  if (typeof found !== "number") return `${formatCount(cut)} pieces did not fit and were not shown to the model.`;
  return cut ? `${formatCount(cut)} of ${formatCount(found)} found did not fit and were not shown to the model.` : `All ${formatCount(found)} found were shown to the model.`;
}

function Value({ value }) {
  if (Array.isArray(value)) {
    if (value.some(isRecord) && value.every((each) => isRecord(each) || each === null)) return html`<${Rows} rows=${value} caption="Values" />`;
    return html`<ul class="values">${value.map((each, place) => html`<li key=${place} dir="auto">${typeof each === "object" && each !== null ? html`<${Value} value=${each} />` : String(each)}</li>`)}</ul>`;
  }
  if (isRecord(value)) {
    return html`<dl class="facts">${Object.entries(value).map(([name, each]) => html`<dt key=${name}>${name}</dt><dd><${Value} value=${each} /></dd>`)}</dl>`;
  }
  if (typeof value === "number") return html`<span class="number">${Number.isInteger(value) ? formatCount(value) : value.toFixed(3)}</span>`;
  return html`<span dir="auto">${value === true ? "yes" : value === false ? "no" : String(value)}</span>`;
}

function Rows({ rows, caption }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row ?? {})))];
  const columns = names.map((name) => ({
    key: name, label: name, number: rows.every((row) => ["number", "undefined"].includes(typeof row?.[name])),
    cell: (row) => (holdsSomething(row?.[name]) ? html`<${Value} value=${row[name]} />` : ""),
  }));
  return html`<${Table} caption=${caption} columns=${columns} rows=${rows} />`;
}

const sources = new Map(); // by path: the evidence of a stored trace while some event shows it, and how many do

/** The evidence of a stored trace by its id, with the texts and places that the tome has now; null while it comes. */
function useSources(tome, number) {
  const path = number ? tomePath(tome, "traces", String(number), "evidence") : "";
  const [found, setFound] = useState(path ? null : {});
  useEffect(() => {
    if (!path) return undefined;
    let isWanted = true;
    if (!sources.has(path)) sources.set(path, { users: 0, coming: get(path).catch(() => ({ evidence: {} })) });
    const source = sources.get(path);
    source.users += 1;
    source.coming.then(({ evidence }) => isWanted && setFound(evidence));
    return () => {
      isWanted = false;
      source.users -= 1;
      if (!source.users) sources.delete(path); // the tome may change before it is opened again
    };
  }, [path]);
  return found;
}

/** Pieces of evidence: score, layer and place in one line; the text, and the way to it in its document, when it is opened. */
export function EvidenceList({ evidence, tome, number }) {
  const found = useSources(tome, number);
  return html`<ol class="evidence">${evidence.map((piece, place) => {
    const source = [piece.layer, piece.title, formatPlace(piece.place)].filter(Boolean).join(" · ");
    const { text = piece.text, document, start, end } = found?.[piece.id] ?? {};
    const words = String(text ?? "").replaceAll(/\s+/g, " ");
    return html`<li key=${place}><details><summary><span class="number score">${piece.score?.toFixed?.(3) ?? ""}</span>
      <span class="source">${source}</span><span class="words" dir="auto">${words ? shorten(words, SHORT) : found ? "(its text is not here any more)" : "…"}</span>
      <${Rewrite} rewrite=${piece.rewrite} evidence=${evidence} /></summary>
      ${text ? html`<blockquote dir="auto">${text}</blockquote>` : null}
      ${document ? html`<p class="evidence-place"><a href=${linkSpan(tome, document, start, end)}>Open in <span dir="auto">${nameDocument(document, piece.title)}</span></a></p>` : null}</details></li>`;
  })}</ol>`;
}

/** The rewritten question that brought a piece, the name that was put into it, and the passage that gave the name. */
function Rewrite({ rewrite, evidence }) {
  if (!isRecord(rewrite) || typeof rewrite.text !== "string" || !rewrite.text) return null;
  const { text, name, source } = rewrite;
  const start = typeof name === "string" && name ? text.indexOf(name) : -1;
  const words = start < 0 ? text : html`${text.slice(0, start)}<b>${name}</b>${text.slice(start + name.length)}`;
  const giver = source ? evidence.findIndex((piece) => piece.id === source) : -1;
  return html`<span class="rewrite">asked again: “<span dir="auto">${words}</span>”${giver < 0 ? null : html`, with a name from <span dir="auto">${evidence[giver].title || `piece ${giver + 1}`}</span>`}</span>`;
}

