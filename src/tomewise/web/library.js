// The library: tomes, the files that are dropped on them, one tome with its documents and its memory.
import {
  Button, Dialog, Empty, ErrorNotice, Field, Fold, Head, Loading, Menu, Notice, Table, Tag, TomeError,
  count, formatBytes, formatCount, html, link, nameDocument, nameKey, useEffect, useGet, useKept, useKeys, useRef, useState,
} from "./parts.js";
import { Passages } from "./answer.js";
import { get, isOpen, send, tomePath, upload } from "./api.js";
import { nameLayer } from "./memory.js";
import { FolderSelect, listFolders, useDocuments } from "./sources.js";
import { Importing, NameDialog, TomeAct, listActions, suggestName } from "./tome_actions.js";
import { JobCard, groupLayers, isPressing, useJobs } from "./build.js";

const FORMATS = "Text, Markdown, HTML, EPUB, PDF, Office files, captions, mail, notebooks, tables and source code.";
const BATCH_FILES = 500; // of one form; the server takes 1,000
const BATCH_SHARE = 0.9; // of the bytes that the server takes at once

// ---------------------------------------------------------------- the library

export function LibraryView({ info, navigate }) {
  const list = useGet("api/tomes", { limit: 1000 });
  const [dialog, setDialog] = useState(null); // the files that the new tome begins with, empty for none
  const [imported, setImported] = useState(null); // the file of a tome that was exported
  const [act, setAct] = useState({}); // what is done with which tome
  const canMake = info.makes_tomes && !info.read_only;
  useKeys("Library", canMake ? [["n", "new tome", () => setDialog([])]] : []);
  const tomes = list.data?.tomes;
  const begin = canMake ? (files) => setDialog(files) : null;
  return html`<${Dropping} onFiles=${begin} label="Drop to make a tome of these">
    <${Head} title="Library" actions=${canMake && tomes?.length ? html`<${Button} onClick=${() => chooseFile(setImported)}>Import…</${Button}><${Button} kind="primary" onClick=${() => setDialog([])}>New tome</${Button}>` : null}>
      ${tomes?.length ? ["A tome holds documents and what was remembered from them.", canMake && "Drop files to begin a new one."].filter(Boolean).join(" ") : null}
    </${Head}>
    <${ErrorNotice} error=${list.error} retry=${list.reload} title="The tomes could not be listed." />
    ${!list.data && !list.error ? html`<${Loading} what="Looking for tomes" />` : null}
    ${tomes && !tomes.length ? html`<${FirstVisit} canMake=${canMake} navigate=${navigate} onNew=${() => setDialog([])} onImport=${() => chooseFile(setImported)} />` : null}
    ${tomes?.length ? html`<ul class="tomes">${tomes.map((name) => html`<${TomeRow} key=${name} name=${name} canWrite=${!info.read_only} onAct=${(what) => setAct({ what, name })} />`)}</ul>` : null}
    ${tomes?.length && canMake && !tomes.includes("sample")
      ? html`<p class="soft aside">New here? <${SampleButton} navigate=${navigate} small kind="quiet" /></p>` : null}
    ${dialog ? html`<${NewTome} files=${dialog} taken=${tomes ?? []} navigate=${navigate} onClose=${() => setDialog(null)} />` : null}
    ${imported ? html`<${Importing} file=${imported} taken=${tomes ?? []} navigate=${navigate} onClose=${() => setImported(null)} />` : null}
    <${TomeAct} act=${act.what} tome=${act.name} taken=${tomes ?? []} onClose=${() => setAct({})} onDone=${() => { setAct({}); list.reload(); }} />
  </${Dropping}>`;
}

/** Opens the browser's own window for the file of a tome. */
function chooseFile(onFile) {
  const input = Object.assign(document.createElement("input"), { type: "file", accept: ".jsonl" });
  input.addEventListener("change", () => { if (input.files.length) onFile(input.files[0]); });
  input.click();
}

function FirstVisit({ canMake, navigate, onNew, onImport }) {
  if (!canMake) {
    return html`<${Empty} title="No tome is served yet" actions=${html`<${Button} onClick=${() => location.reload()}>Look again</${Button}>`}>Start the server with the file of a tome, or with <code>--root FOLDER</code> to make tomes here.</${Empty}>`;
  }
  return html`<${Empty} zone title="Read once, remember, answer with quotations" foot=${FORMATS}
    actions=${html`<${SampleButton} navigate=${navigate} kind="primary" /><${Button} onClick=${onNew}>New tome</${Button}><${Button} kind="quiet" onClick=${onImport}>Import…</${Button}>`}>
    Give Tomewise a novel, a year of transcripts, or a folder of reports. Drop files or folders here,
    or begin with the sample, a detective story in nine chapters.
  </${Empty}>`;
}

/** Makes the tome "sample" of the bundled story, and goes there. */
function SampleButton({ navigate, tome = "sample", ...more }) {
  const [state, setState] = useState({});
  const begin = async () => {
    setState({ busy: true });
    try {
      const sample = await get("api/sample");
      if (tome === "sample" && !(await get("api/tomes", { limit: 1000 })).tomes.includes(tome)) await send("POST", "api/tomes", { name: tome });
      const form = new FormData();
      form.append("files", new File([sample.text], sample.id, { type: "text/markdown" }));
      await upload(tomePath(tome, "documents"), form);
      navigate(link(tome));
    } catch (error) {
      setState({ error });
    }
  };
  return html`<${Button} ...${more} disabled=${state.busy} onClick=${begin}>${state.busy ? "Adding the story…" : "Try the sample story"}</${Button}>
    <${ErrorNotice} error=${state.error} />`;
}

/** One tome. It is opened, which takes the server a moment, when its row comes into sight. */
function TomeRow({ name, canWrite, onAct }) {
  const row = useRef(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((found) => found.some((each) => each.isIntersecting) && setSeen(true));
    watch.observe(row.current);
    return () => watch.disconnect();
  }, []);
  const { data, error } = useGet(seen ? tomePath(name) : null);
  const layers = data ? groupLayers(data.contents.layers) : [];
  return html`<li class="tome" ref=${row}>
    <a class="tome-name" href=${link(name)}>${name}</a>
    <span class="tome-sizes">${error ? html`<span class="is-bad">${error.message}</span>` : data ? [
      count(data.total, "document"), count(data.contents.layers.passages?.nodes ?? 0, "passage"), formatBytes(data.contents.bytes),
    ].map((words) => html`<span key=${words}>${words}</span>`) : html`<span class="soft">opening…</span>`}</span>
    <span class="tome-layers">
      ${layers.map((layer) => html`<${Tag} key=${layer.name} title=${layer.name}>${nameLayer(layer.name, layers.map((each) => each.name))}</${Tag}>`)}
      ${data?.contents.failed.length ? html`<${Tag} kind="warn">${count(countFailures(data.contents.failed), "failure")}</${Tag}>` : null}
      ${data && Object.keys(data.lag).length ? html`<${Tag} title="It does not know the newest documents. It answers all the same.">older memory</${Tag}>` : null}
    </span>
    <span class="tome-acts">${data?.total ? html`<${Button} small href=${link(name, "ask")} aria-label=${`Ask ${name}`}>Ask</${Button}>` : null}
      <${Menu} label="…" title=${`Actions for ${name}`} items=${listActions({ tome: name, isOwned: data?.is_owned, canWrite, onAct })} /></span>
  </li>`;
}

function NewTome({ files, taken, navigate, onClose }) {
  const make = async (name) => {
    await send("POST", "api/tomes", { name });
    waitingFiles.set(name, files);
    navigate(link(name));
  };
  return html`<${NameDialog} title="New tome" first=${files.length ? suggestName(files[0].name) : ""} taken=${taken} word="Make it" act=${make} onClose=${onClose}>
    ${files.length ? html`<p class="soft">${count(files.length, "file")} will be added to it.</p>` : null}</${NameDialog}>`;
}

const waitingFiles = new Map(); // by tome: files that were dropped before the tome was made

// ---------------------------------------------------------------- files

/**
 * Files of a drop, folders included, as `{name, file}`; the name is the path below the drop. `unread` are the names of
 * those that the browser could not read.
 */
async function readDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return { files: nameFiles([...transfer.files]), unread: [] };
  const files = [];
  const unread = [];
  const visit = (entry) => visitWhole(entry).catch(() => { unread.push(entry.fullPath.replace(/^\//, "")); });
  const visitWhole = async (entry) => {
    if (entry.name.startsWith(".")) return; // what a system hides in folders is no document
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      files.push({ name: entry.fullPath.replace(/^\//, ""), file });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const each of some) await visit(each);
    }
  };
  for (const entry of entries) await visit(entry);
  return { files, unread };
}

function nameFiles(files) {
  return files
    .map((file) => ({ name: file.webkitRelativePath || file.name, file }))
    .filter(({ name }) => !name.split("/").some((part) => part.startsWith(".")));
}

/** A place where files can be dropped. Without `onFiles` it takes none. */
function Dropping({ onFiles, label, children }) {
  const [over, setOver] = useState(false);
  const [unread, setUnread] = useState([]);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const isFiles = (event) => latest.current && event.dataTransfer?.types.includes("Files");
    const onOver = (event) => { if (isFiles(event)) { event.preventDefault(); setOver(true); } };
    const onLeave = (event) => { if (!event.relatedTarget) setOver(false); };
    const onDrop = async (event) => {
      setOver(false);
      if (!isFiles(event)) return;
      event.preventDefault();
      const found = await readDrop(event.dataTransfer);
      setUnread(found.unread);
      if (found.files.length) latest.current(found.files);
    };
    const on = { dragover: onOver, dragleave: onLeave, drop: onDrop };
    for (const [name, act] of Object.entries(on)) addEventListener(name, act);
    return () => { for (const [name, act] of Object.entries(on)) removeEventListener(name, act); };
  }, []);
  return html`${unread.length ? html`<${Notice} kind="warn" title="The browser could not read:" actions=${html`<${Button} small onClick=${() => setUnread([])}>Close</${Button}>`}>${unread.join(", ")}</${Notice}>` : null}
    ${children}${over ? html`<div class="drop" aria-hidden="true"><p>${label}</p></div>` : null}`;
}

/**
 * Sends files in batches, also while another view is shown. `state` has the files that are `waiting`, of which the
 * first `flying` are being sent, bytes `sent` of `total`, files that are `tooLarge`, and the `error`. Files that wait
 * when it is stopped stay, to be sent by `run([])`.
 */
function useUploads(tome, limits, onJob) {
  const most = limits.upload_bytes * BATCH_SHARE;
  const state = useKept(nameKey("uploads", tome), () => ({ waiting: [], flying: 0, tooLarge: [], sent: 0, total: 0, redraw: () => {} }));
  state.onJob = onJob;
  const run = (files) => {
    const fresh = makeUnique(files.filter(({ file }) => file.size <= most));
    const names = new Set(fresh.map(({ name }) => name));
    const others = state.waiting.filter(({ name }, place) => place < state.flying || !names.has(name)); // a file that is dropped again takes its own place
    state.waiting = [...others, ...fresh];
    state.tooLarge = [...state.tooLarge, ...files.filter(({ file }) => file.size > most)];
    state.total += sumBytes(fresh);
    if (state.stopping) state.redraw(); // they follow those that are being sent
    else sendAll(tome, state, most);
  };
  const close = () => { Object.assign(state, { waiting: [], tooLarge: [], error: null }); state.redraw(); };
  return { state, run, close, stop: () => state.stopping?.abort(), isShown: state.waiting.length + state.tooLarge.length > 0 };
}

async function sendAll(tome, state, most) {
  const { signal } = Object.assign(state, { sent: 0, total: sumBytes(state.waiting), error: null, stopping: new AbortController() }).stopping;
  try {
    for (let before = 0; state.waiting.length; before = state.sent) {
      state.redraw();
      const batch = takeBatch(state.waiting, most);
      state.flying = batch.length;
      const form = new FormData();
      for (const { name, file } of batch) form.append("files", file, name);
      const onProgress = (sent) => { state.sent = before + sent; state.redraw(); };
      state.onJob(await upload(tomePath(tome, "documents"), form, onProgress, signal));
      state.sent = before + sumBytes(batch);
      state.waiting = state.waiting.slice(batch.length);
    }
  } catch (error) {
    state.error = error;
  }
  Object.assign(state, { stopping: null, flying: 0 });
  state.redraw();
}

function sumBytes(files) {
  return files.reduce((sum, { file }) => sum + file.size, 0);
}

function takeBatch(files, most) {
  let size = 0;
  const end = files.findIndex(({ file }, place) => { size += file.size; return place >= BATCH_FILES || (place > 0 && size > most); });
  return end < 0 ? files : files.slice(0, end);
}

/** Two files of one name would be one document. */
function makeUnique(files) {
  const taken = new Set();
  return files.map(({ name, file }) => {
    let own = name;
    for (let turn = 2; taken.has(own); turn += 1) own = name.replace(/(\.[^./]*)?$/, ` (${turn})$1`);
    taken.add(own);
    return { name: own, file };
  });
}

// ---------------------------------------------------------------- one tome

export function TomeView({ tome, info, navigate }) {
  const summary = useGet(tomePath(tome));
  const jobs = useJobs(tome, summary.reload);
  const uploads = useUploads(tome, info.limits, jobs.put);
  const [leaving, setLeaving] = useState(null); // the document to remove
  const [act, setAct] = useState(""); // what is done with the tome as a whole
  const canWrite = !info.read_only;
  useEffect(() => {
    const files = waitingFiles.get(tome);
    waitingFiles.delete(tome);
    if (files?.length) uploads.run(files);
  }, [tome]);
  const choose = useChooser((files) => uploads.run(files));
  useKeys("Tome", canWrite ? [["+", "add files", () => choose(false)]] : []);
  const { data, error } = summary;
  if (error) return html`<${Head} title=${tome} /><${TomeError} error=${error} retry=${summary.reload} />`;
  if (!data) return html`<${Head} title=${tome} /><${Loading} what="Opening the tome" />`;
  const { contents } = data;
  const shown = jobs.jobs.filter(isPressing);
  const isEmpty = !data.total;
  return html`<${Dropping} onFiles=${canWrite ? uploads.run : null} label=${`Drop to add to ${tome}`}>
    <${Head} title=${tome} actions=${html`
        ${canWrite && !isEmpty ? html`<${Menu} small=${false} kind="" label="Add documents" items=${[
          { label: "Files…", onClick: () => choose(false) }, { label: "A folder…", onClick: () => choose(true) },
        ]} />` : null}
        ${isEmpty ? null : html`<${Button} kind="primary" href=${link(tome, "ask")}>Ask</${Button}>`}
        <${Menu} small=${false} kind="quiet" label="…" title=${`Actions for ${tome}`} items=${listActions({ tome, isOwned: data.is_owned, canWrite, onAct: setAct })} />`}>
      ${isEmpty ? "No documents yet" : [`${count(data.total, "document")}, ${count(contents.layers.passages?.nodes ?? 0, "passage")} of ${contents.passage_tokens} tokens`, formatBytes(contents.bytes), `embedder ${contents.embedder}`].join(" · ")}
    </${Head}>
    <${UploadState} uploads=${uploads} />
    ${isEmpty && !shown.some(isOpen) && !uploads.isShown ? html`<${EmptyTome} tome=${tome} canWrite=${canWrite} choose=${choose} navigate=${(to) => { jobs.load(); navigate(to); }} />` : null}
    ${shown.map((job) => html`<${JobCard} key=${job.id} job=${job} put=${jobs.put} readOnly=${!canWrite} />`)}
    ${isEmpty ? null : html`<div class="split">
      <section class="stack" aria-labelledby="documents"><h2 id="documents">Documents</h2>
        <${Documents} tome=${tome} data=${data} canWrite=${canWrite} onRemove=${setLeaving} /></section>
      <section class="stack" aria-labelledby="memory"><h2 id="memory">Memory</h2><${MemoryList} tome=${tome} data=${data} />
        <${Failures} tome=${tome} failed=${contents.failed} /></section>
    </div>`}
    ${jobs.jobs.length > shown.length ? html`<${Fold} summary=${`Earlier jobs (${jobs.jobs.length - shown.length})`}>
      <div class="stack earlier">${jobs.jobs.filter((job) => !shown.includes(job)).slice(0, 30).map((job) => html`<${JobCard} key=${job.id} job=${job} put=${jobs.put} readOnly=${!canWrite} />`)}</div></${Fold}>` : null}
    ${leaving ? html`<${Removal} tome=${tome} document=${leaving} onClose=${() => setLeaving(null)} onDone=${() => { setLeaving(null); summary.reload(); }} />` : null}
    <${TomeAct} act=${act} tome=${tome} taken=${[]} onClose=${() => setAct("")} onDone=${(name) => navigate(link(name))} />
  </${Dropping}>`;
}

/** Opens the browser's own window for files, or for one folder. */
function useChooser(onFiles) {
  return (folder) => {
    const input = Object.assign(document.createElement("input"), { type: "file", multiple: true, webkitdirectory: folder });
    input.addEventListener("change", () => { if (input.files.length) onFiles(nameFiles([...input.files])); });
    input.click();
  };
}

function EmptyTome({ tome, canWrite, choose, navigate }) {
  if (!canWrite) return html`<${Empty} title="This tome is empty">This server only reads. Add documents with <code>tome add</code>.</${Empty}>`;
  return html`<${Empty} zone title="Add the first documents" foot=${FORMATS} actions=${html`
      <${Button} kind="primary" onClick=${() => choose(false)}>Choose files</${Button}><${Button} onClick=${() => choose(true)}>Choose a folder</${Button}>
      <${SampleButton} tome=${tome} navigate=${navigate} />`}>
    Drop files or folders anywhere on this page.
  </${Empty}>`;
}

function UploadState({ uploads }) {
  const { waiting, tooLarge, sent, total, error, stopping } = uploads.state;
  if (!uploads.isShown) return null;
  const isStopped = error?.name === "AbortError";
  return html`<div class="stack">
    ${stopping ? html`<article class="job"><header><strong>Sending ${count(waiting.length, "file")}</strong>
      <span class="actions"><${Button} small onClick=${uploads.stop}>Stop</${Button}></span></header>
      <div class="progress"><span class="number">${formatBytes(Math.min(sent, total))} of ${formatBytes(total)}</span><progress aria-label="Sent" max=${total || 1} value=${Math.min(sent, total)}></progress></div></article>` : null}
    ${error && waiting.length ? html`<${Notice} kind=${isStopped ? "info" : "error"} title=${`${count(waiting.length, "file")} not sent.`} actions=${html`
      <${Button} small kind="primary" onClick=${() => uploads.run([])}>${isStopped ? "Send the rest" : "Send again"}</${Button}><${Button} small onClick=${uploads.close}>Leave ${waiting.length === 1 ? "it" : "them"}</${Button}>`}>${isStopped ? "Stopped. What was sent before stays." : error.message}</${Notice}>` : null}
    ${tooLarge.length ? html`<${Notice} kind="warn" title="Too large for this server:" actions=${waiting.length ? null : html`<${Button} small onClick=${uploads.close}>Close</${Button}>`}>
      ${tooLarge.map(({ name, file }) => `${name} (${formatBytes(file.size)})`).join(", ")}. Start it with a larger <code>--max-upload</code>, or use <code>tome add</code>.</${Notice}>` : null}
  </div>`;
}

/** The documents, those of a folder, or those whose title or name has some words; and the passages in which these words stand. */
function Documents({ tome, data, canWrite, onRemove }) {
  const [words, setWords] = useState("");
  const [folder, setFolder] = useState("");
  const [sought, setSought] = useState("");
  const list = useDocuments(tome, { words: words.trim(), folder, turn: data });
  const folders = listFolders(list.folders);
  const columns = [
    { key: "name", label: "Document", wide: true, cell: (row) => html`<a class="name" href=${link(tome, "doc", { id: row.id })} dir="auto" title=${row.id}>${nameDocument(row.id, row.title)}</a>
      ${nameDocument(row.id, row.title) === row.id ? null : html`<small class="soft id">${row.id}</small>`}` },
    { key: "passages", label: "Passages", number: true },
    { key: "characters", label: "Characters", number: true, extra: true },
    canWrite && { key: "act", label: html`<span class="hidden">Actions</span>`, number: true, cell: (row) => html`<${Button} small kind="quiet" aria-label=${`Remove ${nameDocument(row.id, row.title)}`} onClick=${() => onRemove(row)}>Remove…</${Button}>` },
  ].filter(Boolean);
  return html`
    <form class="sources-tools" role="search" onSubmit=${(event) => { event.preventDefault(); setSought(words.trim()); }}>
      <${Field} label="Find by title or name; Enter searches the texts"><input type="search" value=${words} onInput=${(event) => { setWords(event.target.value); if (!event.target.value.trim()) setSought(""); }} /></${Field}>
      ${folders.length ? html`<${FolderSelect} folders=${folders} folder=${folder} onChange=${setFolder} />` : null}
    </form>
    ${sought ? html`<${Found} key=${sought} tome=${tome} query=${sought} folder=${folder} onClose=${() => setSought("")} />` : null}
    <${ErrorNotice} error=${list.error} />
    ${list.rows === null && !list.error ? html`<${Loading} />` : null}
    ${list.rows?.length ? html`<${Table} caption="Documents" columns=${columns} rows=${list.rows} rowKey=${(row) => row.id} />` : null}
    ${list.rows && !list.rows.length && !sought ? html`<p class="soft" role="status">No title or name has these words. ${words.trim() ? html`<${Button} small onClick=${() => setSought(words.trim())}>Search the texts</${Button}>` : null}</p>` : null}
    ${canWrite ? html`<p class="soft small">Drop files or folders on this page to add them.</p>` : null}
    ${list.next ? html`<${Button} small onClick=${list.more}>Show more (${formatCount(list.total - list.rows.length)} left)</${Button}>` : null}`;
}

/** The passages that are nearest to some words, without an answer. */
function Found({ tome, query, folder, onClose }) {
  const [state, setState] = useState({});
  useEffect(() => {
    const leaving = new AbortController();
    const documents = folder ? { documents: [`${folder}/`] } : {};
    send("POST", tomePath(tome, "search"), { query, system: "hybrid", limit: 10, ...documents }, { signal: leaving.signal }).then(
      ({ evidence }) => setState({ evidence }), (error) => leaving.signal.aborted || setState({ error }));
    return () => leaving.abort();
  }, [query, folder]);
  const { evidence, error } = state;
  return html`<section class="card stack" aria-labelledby="found"><div class="between"><h3 id="found">Passages about “<span dir="auto">${query}</span>”</h3><${Button} small kind="quiet" onClick=${onClose}>Close</${Button}></div>
    <${ErrorNotice} error=${error} />${evidence || error ? null : html`<${Loading} what="Searching" />`}
    ${evidence?.length ? html`<${Passages} passages=${evidence.map((piece) => ({ ...piece, ...piece.origins[0] }))} tome=${tome} />` : evidence ? html`<p class="soft">Nothing was found.</p>` : null}</section>`;
}

function MemoryList({ tome, data }) {
  const { layers } = data.contents;
  const groups = groupLayers(layers);
  return html`<ul class="layers">
    <li><span>Passages</span><span class="soft number">${formatCount(layers.passages?.nodes ?? 0)}</span></li>
    ${groups.map((group) => html`<li key=${group.name}>
      <a href=${link(tome, "memory", { layer: group.name })} title=${group.name}>${nameLayer(group.name, groups.map((each) => each.name))}</a>
      <span class="soft number">${formatCount(group.parts.reduce((sum, part) => sum + part.nodes, 0))}</span>
      ${group.parts.length > 1 ? html`<span class="soft number parts">${group.parts.map((part) => `${part.name} ${formatCount(part.nodes)}`).join(" · ")}</span>` : null}
      ${data.lag[group.name] !== undefined ? html`<${Tag} kind="warn" title="It answers all the same. The next build takes them in.">${data.lag[group.name] ? `${formatCount(data.lag[group.name])} to take in` : "out of date"}</${Tag}>` : null}
      ${group.parts.some((part) => part.failed) ? html`<${Tag} kind="warn">${formatCount(group.parts.reduce((sum, part) => sum + part.failed, 0))} failed</${Tag}>` : null}
    </li>`)}
  </ul>
  <p class="soft">${data.ready.length ? html`Ready to ask: ${data.ready.slice(0, 6).map((system, place) => html`${place ? ", " : ""}<a key=${system} href=${link(tome, "ask", { system })}>${system}</a>`)}${data.ready.length > 6 ? ` and ${data.ready.length - 6} more` : ""}.` : null}</p>
  <${Button} small href=${link(tome, "build")}>${groups.length ? "Build more" : "Build memory"}</${Button}>`;
}

/** Each thing that failed counts once, as it does for its layer. */
function countFailures(failed) {
  return failed.reduce((sum, each) => sum + each.count, 0);
}

function Failures({ tome, failed }) {
  if (!failed.length) return null;
  return html`<${Fold} open=${failed.length < 3} summary=${html`<span class="is-warn">${count(countFailures(failed), "failure")}; the next build tries again</span>`}>
    <ul class="reasons">${failed.map((each) => html`<li key=${each.layer + each.document + each.reason}>
      <strong>${each.layer}</strong> lacks <a href=${link(tome, "doc", { id: each.document })}>${each.document}</a>, passages ${each.passages.map((at) => at + 1).join(", ")}: ${each.reason}</li>`)}</ul>
  </${Fold}>`;
}

/** Says what goes with a document, then removes it. */
function Removal({ tome, document, onClose, onDone }) {
  const { data, error } = useGet(tomePath(tome, "removal"), { document: document.id });
  const [state, setState] = useState({});
  const remove = async () => {
    setState({ busy: true });
    try {
      await send("DELETE", tomePath(tome, "document"), undefined, { query: { document: document.id } });
      onDone();
    } catch (problem) {
      setState({ error: problem });
    }
  };
  const layers = Object.entries(data?.layers ?? {});
  return html`<${Dialog} title="Remove this document?" onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Keep it</${Button}>
    <${Button} kind="danger" disabled=${!data || state.busy} onClick=${remove}>${state.busy ? "Removing…" : "Remove"}</${Button}>`}>
    <p><strong dir="auto">${nameDocument(document.id, document.title)}</strong></p>
    ${data ? html`<p>With it go:</p><ul class="going">
      <li>${count(data.passages, "passage")}</li>
      ${layers.map(([layer, number]) => html`<li key=${layer}>${formatCount(number)} of ${layer}</li>`)}
      ${Object.entries(data.paid).map(([model, number]) => html`<li key=${model}>${formatCount(number)} of these made by ${model}, and paid for</li>`)}
      ${data.session_answers ? html`<li>${count(data.session_answers, "answer")} in sessions, with the notes that rest on it</li>` : null}
    </ul><p class="soft">The file that it came from is not touched. To get the memory back, add it again and build.</p>` : error ? null : html`<${Loading} what="Looking what rests on it" />`}
    <${ErrorNotice} error=${error ?? state.error} />
  </${Dialog}>`;
}
