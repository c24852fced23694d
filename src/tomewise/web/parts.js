// What all views are made of: the template tag, hooks, small components, and how numbers and times are written.
// Texts of documents and models reach the page as children or attributes alone, which Preact sets as text.
import { Fragment, h, render } from "./vendor/preact.js";
import { useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import { get } from "./api.js";

export const html = htm.bind(h);
export { Fragment, h, render, useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState };

// ---------------------------------------------------------------- addresses

/** The address of a view: `link("novel", "ask", {system})`, `link("novel")`, `link(null, "evaluations", {}, name)`. */
export function link(tome, view = "", query = {}, ...rest) {
  const parts = [...(tome === null ? [] : ["t", tome]), ...(view ? [view] : []), ...rest].map(encodeURIComponent);
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${parts.join("/")}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
}

/** The address of a span of a document in the document view. Offsets count characters. */
export function linkSpan(tome, document, start, end) {
  return link(tome, "doc", { id: document, start, end });
}

// ---------------------------------------------------------------- data

/** JSON from the server: `{data, error, reload}`. A null path asks nothing. Old data stays while new data comes. */
export function useGet(path, query = {}) {
  const [state, setState] = useState({ data: null, error: null, key: null });
  const [turn, setTurn] = useState(0);
  const key = path && `${path}?${JSON.stringify(query)}`;
  useEffect(() => {
    if (!path) return undefined;
    const leaving = new AbortController();
    get(path, query, { signal: leaving.signal }).then(
      (data) => setState({ data, error: null, key }),
      (error) => error.name !== "AbortError" && !leaving.signal.aborted && setState({ data: null, error, key }),
    );
    return () => leaving.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((now) => now + 1), []);
  const isCurrent = state.key?.split("?")[0] === path;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}

/**
 * A list that comes in pages: `{rows, next, error, busy, more, put}`, and what else a page says. Its rows are called `name`; `next` is
 * the value of `start` for the following page, which `more` appends, if the rows are still the same. `put` replaces the rows.
 */
export function usePages(path, name, start, query, turn = 0) {
  const [state, setState] = useState({ rows: null, next: null, error: null, busy: false });
  const read = (from, signal) => {
    setState((now) => ({ ...now, busy: true }));
    return get(path, { ...query, [start]: from }, { signal }).then(
      ({ [name]: rows, ...page }) => setState((now) => {
        if (from !== undefined && now.rows !== state.rows) return { ...now, busy: false };
        return { ...page, rows: from === undefined ? rows : [...now.rows, ...rows], error: null, busy: false };
      }),
      (error) => signal?.aborted || setState((now) => ({ ...now, error, busy: false })),
    );
  };
  useEffect(() => {
    const leaving = new AbortController();
    const wait = setTimeout(() => read(undefined, leaving.signal), query.q ? 200 : 0); // while one types
    return () => { clearTimeout(wait); leaving.abort(); };
  }, [path, JSON.stringify(query), turn]);
  return { ...state, more: () => read(state.next ?? undefined), put: (rows) => setState((now) => ({ ...now, rows })) };
}

// ---------------------------------------------------------------- what outlives a view

export const kept = new Map();

/**
 * What goes on while another view is shown is kept until the page is left. `own` is what is kept under a key, made by
 * `make` at first; `own.redraw()` draws the view that shows it, at most once a frame: events come in crowds.
 */
export function useKept(key, make) {
  const [, setTick] = useState(0);
  const frame = useRef(0);
  if (!kept.has(key)) kept.set(key, make());
  const own = kept.get(key);
  useEffect(() => {
    const draw = () => { frame.current = 0; setTick((now) => now + 1); };
    own.redraw = () => { frame.current ||= requestAnimationFrame(draw); };
    own.redraw();
    return () => {
      cancelAnimationFrame(frame.current);
      frame.current = 0;
      own.redraw = () => {};
    };
  }, [own]);
  return own;
}

// ---------------------------------------------------------------- what outlives a reload

const STORED = "tomewise "; // before each key, since other pages of this address may keep things too
const MOST_STORED = 200;

/** What was stored under a key, or null. */
export function readStored(key) {
  try {
    return JSON.parse(localStorage.getItem(STORED + key))?.value ?? null;
  } catch {
    return null; // a browser may keep nothing, or something that this page did not write
  }
}

/** Stores a value in this browser; null forgets it. Beyond `MOST_STORED` the oldest are forgotten. */
export function writeStored(key, value) {
  try {
    if (value === null) localStorage.removeItem(STORED + key);
    else localStorage.setItem(STORED + key, JSON.stringify({ value, at: Date.now() }));
    const own = Object.keys(localStorage).filter((each) => each.startsWith(STORED));
    if (own.length <= MOST_STORED) return;
    const readTime = (each) => JSON.parse(localStorage.getItem(each)).at;
    own.sort((a, b) => readTime(a) - readTime(b)).slice(0, own.length - MOST_STORED).forEach((each) => localStorage.removeItem(each));
  } catch {
    // it is forgotten with the page, as before
  }
}

/** The key under which something of a tome is kept or stored. */
export function nameKey(kind, tome, ...more) {
  return `${kind} ${JSON.stringify([tome, ...more])}`;
}

/** Gives all that is kept and stored of a tome to its new name; null forgets it. */
export function moveKeys(tome, name) {
  const move = (key, act) => {
    const [, kind, place] = /^(\w+) (\[.*\])$/s.exec(key) ?? [];
    const [owner, ...more] = JSON.parse(place ?? "[]");
    if (owner === tome) act(name === null ? null : nameKey(kind, name, ...more));
  };
  for (const [key, own] of [...kept]) {
    move(key, (moved) => {
      kept.delete(key);
      if (moved) kept.set(moved, own.tome ? Object.assign(own, { tome: name }) : own);
    });
  }
  try {
    for (const each of Object.keys(localStorage).filter((each) => each.startsWith(STORED))) {
      move(each.slice(STORED.length), (moved) => {
        if (moved) localStorage.setItem(STORED + moved, localStorage.getItem(each));
        localStorage.removeItem(each);
      });
    }
  } catch {
    // nothing is kept
  }
}

/** A value that outlives other views and a reload: `[value, put]`. What `makeFirst` gives is the value until one is put. */
export function useStored(key, makeFirst) {
  const [, setTick] = useState(0);
  const own = useRef({});
  if (own.current.key !== key) own.current = { key, value: readStored(key) ?? makeFirst() };
  const put = useCallback((value) => {
    if (own.current.key === key) own.current = { key, value };
    writeStored(key, value);
    setTick((now) => now + 1);
  }, [key]);
  return [own.current.value, put];
}

// ---------------------------------------------------------------- keys

const PAUSE = 1500; // milliseconds within which the second key of two follows the first
const keyGroups = new Set();

export function areKeysOn() {
  return readStored("keys") !== false;
}

/** Shortcuts while a view is shown: `useKeys("Document", [["n", "next quotation", act], ...])`. They rest while one types. */
export function useKeys(title, keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const group = { title, list: () => latest.current };
    keyGroups.add(group);
    return () => keyGroups.delete(group);
  }, [title]);
}

export function listKeys() {
  return [...keyGroups].map((group) => ({ title: group.title, keys: group.list() }));
}

let prefix = "";
let pressedAt = 0;

/** Runs the shortcut of a key event. A name such as "g a" is two keys, one after the other. Keys of letters and signs can be switched off. */
export function pressKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || (event.key.length === 1 && !areKeysOn())) return;
  if (event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], dialog, .tp-stage")) return;
  if (event.timeStamp - pressedAt > PAUSE) prefix = "";
  pressedAt = event.timeStamp;
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  const all = [...keyGroups].flatMap((group) => group.list());
  const found = all.find(([name]) => name === pressed);
  prefix = !found && all.some(([name]) => name.startsWith(`${event.key} `)) ? event.key : "";
  if (!found) return;
  event.preventDefault();
  found[2]();
}

// ---------------------------------------------------------------- numbers and times

export function formatCount(number) {
  return number === null || number === undefined ? "–" : Number(number).toLocaleString("en");
}

/** `count(1, "call")` is "1 call", `count(2, "entity", "entities")` is "2 entities". */
export function count(number, one, many = `${one}s`) {
  return `${formatCount(number)} ${number === 1 ? one : many}`;
}

export function formatBytes(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let size = bytes;
  let unit = 0;
  for (; size >= 1000 && unit < 3; unit += 1) size /= 1000;
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function formatMoney(dollars) {
  if (dollars === null || dollars === undefined) return "price unknown";
  if (dollars === 0) return "$0";
  if (dollars < 0.00005) return "< $0.0001";
  return `$${dollars < 1 ? dollars.toFixed(4) : dollars.toFixed(2)}`;
}

export function formatSeconds(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

const NUMBERED = /^(?:(?:chapter|section)\s+)?(?:(\d{1,3}(?:\.\d{1,3})+)\b|(\d{1,3}|[IVXLC]+)(?=[.:)]|\s*$|\s+[—–-]\s))/i;

/** A place in a document in a few words, as the command line writes it: "ch. 3, p. 37–38", "12:04, Anna". */
export function formatPlace(place) {
  if (!place || typeof place === "string") return place ?? "";
  const numbers = (place.chapter ?? []).map((heading) => NUMBERED.exec(heading)).filter(Boolean).map((found) => found[1] ?? found[2]);
  const innermost = place.chapter?.at(-1) ?? "";
  const span = (unit, first, last) => (first === undefined ? "" : `${unit} ${first}${last === undefined ? "" : `–${last}`}`);
  return [
    numbers.length ? `ch. ${numbers.at(-1)}` : "",
    innermost && !NUMBERED.test(innermost) ? `“${innermost.length > 60 ? `${innermost.slice(0, 59)}…` : innermost}”` : "",
    span("p.", place.page, place.last_page), span("slide", place.slide), span("row", place.row, place.last_row), span("cell", place.cell),
    place.time ?? "", place.speaker ? (place.time ? place.speaker : `begins with ${place.speaker}`) : "",
  ].filter(Boolean).join(", ");
}

export function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** The name of a document: its title, or the last part of its id. */
export function nameDocument(id, title) {
  return title || id.replace(/\/+$/, "").split("/").at(-1) || id;
}

/** Money in a table, whose heading says what it is. */
export function Money({ value }) {
  return value === null ? html`<span class="soft" title="The price of this model is not known">unknown</span>` : html`<span class="number">${formatMoney(value)}</span>`;
}

/** A time: the day and the hour, in words where it is near; the exact time as a tip. */
export function Time({ value }) {
  if (!value) return null;
  const date = new Date(value);
  const minutes = Math.round((Date.now() - date) / 60000);
  const near = minutes < 1 ? "just now" : minutes < 60 ? `${minutes} min ago` : null;
  const sameDay = date.toDateString() === new Date().toDateString();
  const options = sameDay ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  return html`<time datetime=${date.toISOString()} title=${date.toLocaleString()}>${near ?? date.toLocaleString("en-GB", options)}</time>`;
}

// ---------------------------------------------------------------- names

/** What is known of a system; of a variant, or of one put together such as `raptor+evolve`, what is known of its first part. */
export function findSystem(name, systems) {
  const [whole] = name.split(":");
  return systems.find((system) => system.name === whole) ?? systems.find((system) => whole.startsWith(`${system.name}+`));
}

/** The name that shares most pairs of letters with a misspelt one. */
export function findNearest(name, names) {
  const listPairs = (word) => [...` ${word.toLowerCase()} `].map((letter, at, all) => letter + all[at + 1]).slice(0, -1);
  const pairs = listPairs(name);
  const rate = (other) => { const own = listPairs(other); return (2 * own.filter((pair) => pairs.includes(pair)).length) / (own.length + pairs.length); };
  return names.reduce((best, other) => (rate(other) > rate(best) ? other : best), names[0]);
}

// ---------------------------------------------------------------- components

/** A button, or with `href` a link that looks like one. `kind`: "" (outlined), "primary", "quiet", "danger". */
export function Button({ kind = "", href, small, children, ...more }) {
  const look = `button ${kind} ${small ? "small" : ""}`;
  if (href !== undefined) return html`<a class=${look} href=${href} ...${more}>${children}</a>`;
  return html`<button type="button" class=${look} ...${more}>${children}</button>`;
}

/** A label around one control. `hint` stands below it. */
export function Field({ label, hint, wide, children }) {
  return html`<label class=${`field ${wide ? "wide" : ""}`}>
    <span class="field-label">${label}</span>${children}
    ${hint ? html`<span class="hint">${hint}</span>` : null}
  </label>`;
}

/** A message. `kind`: "info", "good", "warn", "error"; an error interrupts a screen reader. `actions` are buttons. */
export function Notice({ kind = "info", title, actions, children }) {
  return html`<div class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "status"}>
    <div>${title ? html`<strong>${title}</strong>` : null}<div>${children}</div></div>
    ${actions ? html`<div class="actions">${actions}</div>` : null}
  </div>`;
}

/** The sentence of an error, with a way to try again where there is one. */
export function ErrorNotice({ error, title, retry }) {
  if (!error) return null;
  return html`<${Notice} kind="error" title=${title} actions=${retry && error.code !== "unknown_name" ? html`<${Button} small onClick=${retry}>Try again</${Button}>` : null}>
    ${error.message}
  </${Notice}>`;
}

/** Why a thing cannot be shown. For one that is not there, which is no fault to try again: `title`, a line, and the way `back`. */
export function Missing({ error, retry, title, back, words, children }) {
  if (error?.code !== "unknown_name") return html`<${ErrorNotice} error=${error} retry=${retry} />`;
  return html`<${Empty} title=${title} actions=${html`<${Button} href=${back}>${words}</${Button}>`}>${children}</${Empty}>`;
}

/** Why a tome cannot be shown. */
export function TomeError(more) {
  return html`<${Missing} ...${more} title="No tome of this name is served here" back=${link(null)} words="Go to the library">
    Its file may have been moved, or the server was started with other tomes.
  </${Missing}>`;
}

/** Says that no system has this name, and offers the nearest one, which `onTake` is called with. */
export function NoSystem({ name, systems, onTake }) {
  const near = findNearest(name, systems.map((system) => system.name));
  return html`<${Notice} kind="warn" title=${html`There is no system “<bdi>${name}</bdi>”.`}
    actions=${html`<${Button} small onClick=${() => onTake(near)}>Use ${near}</${Button}>`}>Did you mean ${near}?</${Notice}>`;
}

/** What stands where nothing is yet: what it will hold, and the first thing to do. In a `zone` files can be dropped; `foot` is a last line. */
export function Empty({ title, children, actions, zone, foot }) {
  return html`<div class=${`empty ${zone ? "zone" : ""}`}><h2>${title}</h2><p>${children}</p>${actions ? html`<div class="actions">${actions}</div>` : null}
    ${foot ? html`<p class="small">${foot}</p>` : null}</div>`;
}

/** A line that appears only if loading takes a while. */
export function Loading({ what = "Loading" }) {
  return html`<p class="loading" role="status">${what}…</p>`;
}

/**
 * A table. A column is `{key, label, number?, wide?, short?, extra?, cell?: (row) => ...}`: a `short` one stays in one line, an `extra` one is left out on small screens; `caption` is read aloud, and shown with `showCaption`.
 * Where it is wider than the screen, it scrolls by itself.
 */
export function Table({ columns, rows, rowKey = (row, place) => place, caption, showCaption, mark }) {
  const box = useRef(null);
  useEffect(() => { box.current.tabIndex = box.current.scrollWidth > box.current.clientWidth ? 0 : -1; }); // a stop for the keyboard where there is something to scroll
  return html`<div class="scroll" ref=${box} role="group" aria-label=${caption}><table>
    <caption class=${showCaption ? "" : "hidden"}>${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th scope="col" key=${column.key} class=${lookOf(column)}>${column.label}</th>`)}</tr></thead>
    <tbody>${rows.map((row, place) => html`<tr key=${rowKey(row, place)} class=${mark?.(row) ?? ""}>
      ${columns.map((column) => html`<td key=${column.key} class=${lookOf(column)}>
        ${column.cell ? column.cell(row) : column.number ? formatCount(row[column.key]) : row[column.key]}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

function lookOf({ number, wide, extra, short }) {
  return [number && "number", wide && "wide", extra && "extra", short && "short"].filter(Boolean).join(" ");
}

/** How much of a task is done. A `total` of 0 is not known yet. */
export function Progress({ label, done, total }) {
  const words = total ? `${formatCount(done)} of ${formatCount(total)}` : done ? formatCount(done) : "";
  return html`<div class="progress">
    <span class="progress-label">${label}</span><span class="number">${words}</span>
    <progress aria-label=${label} max=${total || 1} value=${total ? Math.min(done, total) : undefined}></progress>
  </div>`;
}

/** A button that opens a list: `items` are `{label, onClick?, href?, danger?, hint?}`, null ones are left out. */
export function Menu({ label, kind = "quiet", small = true, title, items }) {
  const box = useRef(null);
  const close = () => { box.current.open = false; };
  const onKey = (event) => {
    const entries = [...box.current.querySelectorAll("[role=menuitem]")];
    const at = entries.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && box.current.open) { close(); box.current.querySelector("summary").focus(); event.stopPropagation(); }
    if (!step) return;
    event.preventDefault();
    box.current.open = true;
    entries[(at + step + entries.length) % entries.length]?.focus();
  };
  const onLeave = (event) => !box.current.contains(event.relatedTarget) && close();
  const place = () => { // by the window, since a list that scrolls would cut the menu off
    if (!box.current.open) return;
    const at = box.current.getBoundingClientRect();
    const list = box.current.querySelector(".menu-list");
    const below = at.bottom + 4 + list.offsetHeight < innerHeight;
    list.style.top = `${below ? at.bottom + 4 : at.top - 4 - list.offsetHeight}px`;
    list.style.left = `${Math.max(8, Math.min(at.right, innerWidth - 8) - list.offsetWidth)}px`;
  };
  return html`<details class="menu" ref=${box} onKeyDown=${onKey} onFocusOut=${onLeave} onToggle=${place}>
    <summary class=${`button ${kind} ${small ? "small" : ""}`} aria-label=${title} title=${title}>${label}</summary>
    <div class="menu-list" role="menu">${items.filter(Boolean).map((item) => {
      const look = { class: item.danger ? "danger" : "", role: "menuitem", key: item.label };
      const words = html`${item.label}${item.hint ? html`<small>${item.hint}</small>` : null}`;
      return item.href
        ? html`<a ...${look} href=${item.href} download=${item.download} onClick=${close}>${words}</a>`
        : html`<button type="button" ...${look} onClick=${() => { close(); item.onClick(); }}>${words}</button>`;
    })}</div>
  </details>`;
}

/** A window over the page. It is open while it is in the tree; `onClose` is called for Escape and the cross. */
export function Dialog({ title, onClose, actions, children }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  const id = useId();
  return html`<dialog ref=${box} aria-labelledby=${id} onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onClick=${(event) => event.target === box.current && onClose()}>
    <div class="dialog">
      <div class="dialog-head"><h2 id=${id}>${title}</h2><${Button} kind="quiet" small class="button quiet small close" aria-label="Close" onClick=${onClose}>×</${Button}></div>
      <div class="dialog-body">${children}</div>
      ${actions ? html`<div class="actions dialog-foot">${actions}</div>` : null}
    </div>
  </dialog>`;
}

/** A quotation with its number, where it stands, and a link to there. */
export function Quote({ number, text, source, href }) {
  return html`<figure class="quote">
    ${number ? html`<span class="quote-number" aria-hidden="true">${number}</span>` : null}
    <blockquote dir="auto">${text}</blockquote>
    <figcaption>${href ? html`<a href=${href}>${source}</a>` : source}</figcaption>
  </figure>`;
}

/** A short word about a state: "built", "running", "declined". `kind` as for a notice. */
export function Tag({ kind = "", children, title }) {
  return html`<span class=${`tag ${kind}`} title=${title}>${children}</span>`;
}

/** Shows a part when it is opened. `open` is the first state. */
export function Fold({ summary, open, onToggle, children, class: name = "" }) {
  return html`<details class=${`fold ${name}`} open=${open} onToggle=${onToggle}><summary>${summary}</summary>${children}</details>`;
}

/** Head of a view: its heading, which gets the focus when the view is opened, a line below it, and actions. */
export function Head({ title, children, actions }) {
  return html`<header class="head"><div><h1 tabindex="-1">${title}</h1>${children ? html`<p class="lead">${children}</p>` : null}</div>
    ${actions ? html`<div class="actions">${actions}</div>` : null}</header>`;
}
