// The frame of the page: which view an address shows, the way between views, shortcuts, and whether the server is there.
import {
  Button, Dialog, ErrorNotice, Loading, Notice, areKeysOn, html, link, listKeys, nameDocument, pressKey, render, useEffect, useErrorBoundary, useGet, useKeys, useRef, useState, writeStored,
} from "./parts.js";
import { ModelButton } from "./models.js";
import { connectionState, loadModule, watchConnection } from "./api.js";

// By the words of an address: the module of the view, and the component in it.
const VIEWS = {
  "": ["library.js", "LibraryView"],
  tome: ["library.js", "TomeView"],
  build: ["build.js", "BuildView"],
  ask: ["ask.js", "AskView"],
  compare: ["question.js", "CompareView"],
  doc: ["document.js", "DocumentView"],
  memory: ["memory.js", "MemoryView"],
  history: ["records.js", "HistoryView"],
  entity: ["entity.js", "EntityView"],
  evaluations: ["records.js", "EvaluationsView"],
};
const NEEDS_SYSTEMS = new Set(["build", "ask", "compare"]);
const TABS = [
  ["", "Overview", "o"], ["ask", "Ask", "a"], ["compare", "Compare", "c"], ["memory", "Memory", "m"], ["build", "Build", "b"], ["history", "History", "h"],
];

/** What an address says: `{name, tome, query, rest}`; `name` is null for an address that no view has. */
export function readAddress(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return { name: null, tome: null, query: {}, rest: [] };
  }
  const query = Object.fromEntries(new URLSearchParams(search));
  if (parts[0] !== "t") {
    const [name = "", ...rest] = parts;
    return { name: name === "" || name === "evaluations" ? name : null, tome: null, query, rest };
  }
  const [, tome, view = "tome", ...rest] = parts;
  const isKnown = tome && Object.hasOwn(VIEWS, view) && !["", "evaluations"].includes(view);
  return { name: isKnown ? view : null, tome: tome ?? null, query, rest };
}

/** What the browser calls a view: "History 3 · novel · Tomewise". */
function nameView({ name, tome, query, rest }) {
  const label = name === "doc" ? nameDocument(query.id ?? "") : name === "entity" ? query.name : name === "evaluations" ? "Evaluations" : name && TABS.find(([view]) => view === name)?.[1];
  return [[label, rest[0]].filter(Boolean).join(" "), tome, "Tomewise"].filter(Boolean).join(" · ");
}

function navigate(address) {
  location.hash = address;
}

function useAddress() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    follow(); // it may have changed since the first drawing
    return () => removeEventListener("hashchange", follow);
  }, []);
  return readAddress(hash);
}

/** The component of a view, once its module has been loaded. */
function useView(name) {
  const [loaded, setLoaded] = useState({});
  useEffect(() => {
    if (name === null) return undefined;
    let isWanted = true;
    const put = (found) => isWanted && setLoaded({ name, ...found }); // a module that comes late must not replace a later one
    const [file, component] = VIEWS[name];
    loadModule(file).then(
      (module) => put({ view: module[component] }),
      () => put({ error: { message: "This part of the page could not be loaded. Reload the page." } }),
    );
    return () => { isWanted = false; };
  }, [name]);
  return loaded.name === name ? loaded : {};
}

let hasArrived = false; // the first view does not take the focus: a reader begins at the top

function App() {
  const address = useAddress();
  const brief = useGet("api/info", { systems: false });
  const full = useGet("api/info"); // takes long the first time, since all systems are looked at
  const info = full.data || NEEDS_SYSTEMS.has(address.name) ? full : brief;
  const { view: View, error } = useView(address.name);
  const isClosed = info.error?.status === 401 && !brief.data; // it never showed a token
  const isShown = address.name === null || Boolean(View && info.data);
  const [helps, setHelps] = useState(false);
  const main = useRef(null);
  const place = `${address.name}/${address.tome}/${address.rest}`;
  useEffect(() => { document.title = nameView(address); }, [place, address.query.id, address.query.name]);
  useEffect(() => {
    if (!isShown) return;
    if (!hasArrived) { hasArrived = true; return; }
    scrollTo(0, 0);
    if (main.current.querySelector("[data-first]:focus")) return; // a view may have a better place for it
    (main.current.querySelector("h1") ?? main.current).focus({ preventScroll: true });
  }, [place, isShown]);
  useEffect(() => setHelps(false), [location.hash]); // keys that were looked up do not lie over the next view
  useEffect(() => document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [address.name]);
  useKeys("Everywhere", [
    ["?", "these shortcuts", () => setHelps(true)],
    ["g l", "library", () => navigate(link(null))],
    ["g e", "evaluations", () => navigate(link(null, "evaluations"))],
    ...(address.tome ? TABS.map(([name, label, key]) => [`g ${key}`, label.toLowerCase(), () => navigate(link(address.tome, name))]) : []),
  ]);
  useEffect(() => {
    addEventListener("keydown", pressKey);
    return () => removeEventListener("keydown", pressKey);
  }, []);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <${TopBar} address=${address} info=${info.data ?? brief.data} onHelp=${() => setHelps(true)} />
    ${isClosed ? null : html`<${Connection} />`}
    <main id="main" ref=${main} tabindex="-1" class=${`view-${address.name || "library"}`}>
      ${isClosed ? html`<${Closed} />` : html`<${ErrorNotice} error=${error ?? info.error} />`}
      ${address.name === null ? html`<${Lost} />` : null}
      ${View && info.data
        ? html`<${Guarded} key=${place}><${View} key=${address.tome} tome=${address.tome} query=${address.query} rest=${address.rest} navigate=${navigate} info=${info.data} /></${Guarded}>`
        : address.name !== null && !error && !info.error ? html`<h1 class="hidden">Tomewise</h1><${Loading} />` : null}
    </main>
    ${helps ? html`<${Shortcuts} onClose=${() => setHelps(false)} />` : null}`;
}

/** A view that cannot be drawn leaves the frame as it is, and the ways to other views. */
function Guarded({ children }) {
  const [fault] = useErrorBoundary();
  if (!fault) return children;
  return html`<h1 tabindex="-1">This view could not be drawn</h1>
    <${ErrorNotice} error=${{ message: `${fault.message ?? fault}. This is an error of the page: reload it, or go to another view.` }} />`;
}

function TopBar({ address, info, onHelp }) {
  const at = address.name === "doc" ? "" : address.name === "tome" ? "" : address.name;
  return html`<header class="bar">
    <a class="brand" href="#/" aria-current=${address.name === "" ? "page" : undefined}><img src="assets/icon.svg" alt="" width="24" height="24" /><span>Tomewise</span></a>
    ${address.tome
      ? html`<a class="crumb" href=${link(address.tome)} title=${address.tome}>${address.tome}</a>
        <nav class="tabs" aria-label="Views of this tome">${TABS.map(([name, label]) => html`
          <a key=${name} href=${link(address.tome, name)} aria-current=${at === name ? "page" : undefined}>${label}</a>`)}</nav>`
      : html`<nav class="tabs" aria-label="Views"><a href="#/" aria-current=${address.name === "" ? "page" : undefined}>Library</a>
        <a href="#/evaluations" aria-current=${address.name === "evaluations" ? "page" : undefined}>Evaluations</a></nav>`}
    <div class="status">
      ${info ? html`<${ModelButton} info=${info} />` : null}
      <${Button} kind="quiet" small aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick=${onHelp}>?</${Button}>
    </div>
  </header>`;
}

/** Says that the server is gone, and that it is back. */
function Connection() {
  const [state, setState] = useState(connectionState());
  useEffect(() => watchConnection(setState), []);
  if (state === "here") return null;
  if (state === "token") {
    return html`<${Notice} kind="error" title="The server wants a new token.">It was started again. Open the address that it printed.</${Notice}>`;
  }
  return html`<${Notice} kind="warn" title="The server does not answer.">This page goes on as soon as it is back.</${Notice}>`;
}

/** What a browser sees that has not yet shown the token. */
function Closed() {
  return html`<div class="closed stack"><h1 tabindex="-1">Open the address that the server printed</h1>
    <p>This browser has no key to this server yet. When <code>tome serve</code> starts, it prints an address that ends in <code>?token=…</code>. Open that address once, and this page will be here.</p>
    <p class="soft">A server that was started again prints a new address; set <code>TOMEWISE_TOKEN</code> to keep one.</p></div>`;
}

function Lost() {
  return html`<div class="empty"><h1 tabindex="-1">No view has this address</h1><p><a href="#/">Go to the library</a></p></div>`;
}

function Shortcuts({ onClose }) {
  const [isOn, setIsOn] = useState(areKeysOn());
  const turn = (event) => { writeStored("keys", event.target.checked ? null : false); setIsOn(event.target.checked); };
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <label class="check"><input type="checkbox" checked=${isOn} onChange=${turn} /> Keys of letters and signs act outside of fields</label>
    <div class="columns">${listKeys().map(({ title, keys }) => html`<section key=${title}><h3>${title}</h3>
      <dl class="keys">${keys.map(([key, label]) => html`<dt key=${key}>${key.split(" ").map((each) => html`<kbd>${each}</kbd>`)}</dt><dd>${label}</dd>`)}</dl></section>`)}</div>
  </${Dialog}>`;
}

render(html`<${App} />`, document.getElementById("app"));
