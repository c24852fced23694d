// Asking: a chat with sessions.
import {
  Button, Empty, ErrorNotice, Fold, Loading, Menu, TomeError,
  count, findSystem, formatCount, html, kept, link, nameKey, useCallback, useEffect, useGet, useKept, useKeys, useMemo, usePages, useRef, useState, useStored, writeStored,
} from "./parts.js";
import { get, send, tomePath } from "./api.js";
import { useModel } from "./models.js";
import { TurnView, isBusy, startTurn } from "./question.js";
import { ALL, SourcesDialog, describeSources, isAll, readScope } from "./sources.js";
import { ExtrasForm, Hindrance, NO_EXTRAS, SettingsForm, SystemList, SystemSelect, chooseSystem, countExtras, describeSystem, makeBody, readChoice } from "./systems.js";

/** The key under which the chat of a session is kept; that of questions asked alone has no session. */
function nameChat(tome, session) {
  return nameKey("chat", tome, session);
}

const MOST_TURNS = 40; // of a chat in the page; earlier ones are in the history
const MOST_CHATS = 20; // that are kept while another view is shown
const MOST_SESSIONS = 50; // in the list at once

/** A chat of this visit: `turns` were asked here, `before` are those that the server keeps, `record` what it has of the session. */
function makeChat(tome, session) {
  return { tome, session, turns: [], gone: 0, before: null, record: null, leaving: null, error: null, redraw: () => {} };
}

/** Appends a turn. The oldest go, and of those that stay the tome keeps the events: a page that is open all day stays light. */
function addTurn(chat, turn) {
  for (const each of chat.turns) if (each.answer?.trace) Object.assign(each, { number: each.answer.trace, events: [] });
  const key = (chat.turns.at(-1)?.key ?? 0) + 1;
  chat.turns.push({ ...turn, key });
  const surplus = Math.max(0, chat.turns.length - MOST_TURNS);
  chat.turns.splice(0, surplus);
  chat.gone += surplus;
  const idle = [...kept].filter(([, own]) => own.turns && own !== chat && !own.turns.some(isBusy));
  for (const [name] of idle.slice(0, Math.max(0, idle.length - MOST_CHATS))) kept.delete(name);
  return chat.turns.at(-1);
}

/** The sessions of a tome, all of them. */
function useSessions(tome) {
  const [turn, setTurn] = useState(0);
  const { rows, next, error, more } = usePages(tomePath(tome, "sessions"), "sessions", "after", { limit: 1000 }, turn);
  useEffect(() => { if (next) more(); }, [next]);
  return { sessions: rows ?? [], error, reload: useCallback(() => setTurn((now) => now + 1), []) };
}

/** What an address asks to be filled in: all of a stored question to ask it again, or a question without a system, which leaves the rest. */
function fillIn(query, form, draft) {
  const { question, system, instructions } = query;
  const written = { text: question, options: readTexts(query.options), sources: { documents: readTexts(query.documents), where: readTexts(query.where) } };
  if (system) {
    const settings = readJson(query.settings);
    const choice = readChoice(system, settings && typeof settings === "object" && !Array.isArray(settings) ? settings : {});
    return [{ ...form, choice, extras: { ...NO_EXTRAS, instructions: instructions ?? "" } }, written];
  }
  const extras = { ...form.extras, ...(instructions ? { instructions } : {}) };
  if (!draft.text.trim()) return [{ ...form, extras }, { ...written, sources: isAll(written.sources) ? draft.sources : written.sources }];
  return [form, draft.text.includes(question) ? draft : { ...draft, text: `${draft.text.trimEnd()}\n${question}` }];
}

function readTexts(text) {
  const found = readJson(text);
  return Array.isArray(found) ? found.map(String) : [];
}

function readJson(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null; // an address can be written by anyone
  }
}

/** What is written and not asked yet, kept with the chat: the words, options, and the sources that a new chat will look into. */
const NO_DRAFT = { text: "", options: [], sources: ALL };

function nameDraft(tome, session) {
  return nameKey("draft", tome, session);
}

export function AskView({ tome, query, info, navigate }) {
  const session = query.session ?? null;
  const summary = useGet(tomePath(tome));
  const sessions = useSessions(tome);
  const chat = useKept(nameChat(tome, session), () => makeChat(tome, session));
  const [form, setForm] = useStored(nameKey("form", tome), () => ({ choice: null, extras: NO_EXTRAS, alone: info.read_only }));
  const [draft, setDraft] = useStored(nameDraft(tome, session), () => NO_DRAFT);
  const [model] = useModel();
  const input = useRef(null);
  const box = useRef(null);
  useEffect(() => { loadTurns(chat); }, [chat]);
  useEffect(() => {
    if (!query.question) return;
    const [filled, written] = fillIn(query, form, draft);
    setForm(filled);
    setDraft(written);
    location.replace(link(tome, "ask", { session })); // so that it is filled in once
  }, [query.question]);
  useEffect(() => { if (query.system && !query.question) setForm({ ...form, choice: readChoice(query.system) }); }, [query.system]);
  const stop = () => chat.leaving?.abort();
  useKeys("Ask", [["/", "write a question", () => input.current?.focus()], ["Escape", "stop", stop]]);

  const { data, error } = summary;
  const known = addOwn(tome, sessions.sessions);
  const record = info.read_only ? null : chat.record;
  const hasBegun = record !== null || (!info.read_only && session !== null && chat.turns.some((turn) => turn.answer?.kept)); // the session fixes its system then
  const choice = form.choice ?? readChoice(chooseSystem(data));
  const extras = { ...form.extras, options: draft.options };
  const sources = record ? readScope(record.within) : draft.sources;
  const all = [...(chat.before ?? []), ...chat.turns];
  const busy = all.some(isBusy);
  const run = (turn, own = chat) => startTurn(own, tome, turn).then(() => turn.answer && !own.record && loadRecord(own));
  useEffect(() => { if (!busy && chat.turns.length) sessions.reload(); }, [chat, busy]);
  const begin = (body, own = chat) => {
    run(addTurn(own, { body, state: "asking", events: [] }), own);
    requestAnimationFrame(() => box.current?.querySelector(".turn:last-of-type")?.scrollIntoView({ block: "start" }));
  };
  const ask = (question) => {
    if (!question.trim() || busy) return;
    const name = info.read_only ? null : session ?? (form.alone ? null : nameSession(question, known));
    const own = name && name !== session ? { ...makeChat(tome, name), before: [] } : chat;
    begin(makeBody(question, { choice: hasBegun ? null : choice, extras, session: name, sources: hasBegun ? null : sources, model, accept: info.limits.ask_above }), own);
    setDraft({ ...NO_DRAFT, sources: name ? ALL : sources }); // options belong to this question, and its sources to its chat
    if (own === chat) return;
    kept.delete(nameChat(tome, session));
    kept.set(nameChat(tome, name), own);
    writeStored(nameDraft(tome, name), { ...NO_DRAFT, sources });
    navigate(link(tome, "ask", { session: name }));
  };
  /** The same question once more, with all that belonged to it, for a guess. */
  const guess = ({ body: { system, settings, documents, where, session: name, ...body } }) => begin({
    ...body, ...(hasBegun ? {} : { system, settings, documents, where }), ...(name && !info.read_only ? { session: name } : {}), force: true,
  });
  const stopChat = (name) => kept.get(nameChat(tome, name))?.leaving?.abort();
  const forget = (name) => {
    stopChat(name);
    kept.delete(nameChat(tome, name));
    if (name !== null) writeStored(nameDraft(tome, name), null);
    if (name === session) navigate(link(tome, "ask"));
    sessions.reload();
  };
  const isLoading = session !== null && chat.before === null && !chat.error;
  return html`<div class="ask">
    <${Sessions} tome=${tome} sessions=${known} current=${session} onStop=${stopChat} onForget=${forget} readOnly=${info.read_only} error=${sessions.error} />
    <div class="chat" ref=${box}>
      <h1 tabindex="-1" class="hidden">${session ?? "Ask"}</h1>
      <${TomeError} error=${error} retry=${summary.reload} /><${ErrorNotice} error=${chat.error} />
      ${data && !data.total ? html`<${Empty} title="Nothing to ask about yet" actions=${html`<${Button} kind="primary" href=${link(tome)}>Add documents</${Button}>`}>This tome holds no documents.</${Empty}>` : null}
      ${data?.total && !all.length && !isLoading ? html`<${Welcome} data=${data} model=${model || info.model} tome=${tome} onAsk=${ask} />` : null}
      ${isLoading ? html`<${Loading} what="Opening the session" />` : null}
      ${chat.gone ? html`<p class="soft">${count(chat.gone, "earlier question")} of this visit ${chat.gone === 1 ? "is" : "are"} in the <a href=${link(tome, "history")}>history</a>.</p>` : null}
      ${all.map((turn, place) => html`<${TurnView} key=${`${session} ${turn.key ? `own ${turn.key}` : place}`} turn=${turn} tome=${tome}
        onAgain=${(more) => { if (!busy) { Object.assign(turn.body, more); run(turn); } }} onGuess=${place === all.length - 1 && !busy ? () => guess(turn) : null} />`)}
      ${data?.total && !isLoading ? html`<${Composer} key=${session} input=${input} info=${info} data=${data} tome=${tome} record=${record} busy=${busy} onAsk=${ask} onStop=${stop}
        form=${{ ...form, choice, extras }} setForm=${({ extras: { options, ...rest }, ...more }) => { setForm({ ...more, extras: { ...rest, options: [] } }); if (options !== draft.options) setDraft({ ...draft, options }); }}
        text=${draft.text} setText=${(text) => setDraft({ ...draft, text })} sources=${sources} setSources=${(chosen) => setDraft({ ...draft, sources: chosen })} />` : null}
    </div>
  </div>`;
}

/** The sessions, with those that were begun here and have no answer yet. */
function addOwn(tome, sessions) {
  const names = new Set(sessions.map((session) => session.name));
  const begun = [...kept.values()].filter((chat) => chat.tome === tome && chat.session && chat.turns.length && !names.has(chat.session));
  return [...sessions, ...begun.map(({ session, turns }) => ({ name: session, system: turns[0].body.system, count: turns.length }))];
}

/** The turns that a session has on the server, each with its stored answer where the tome still keeps it. */
async function loadTurns(chat) {
  if (chat.session === null || chat.before !== null) return;
  await loadRecord(chat);
  try {
    chat.before = chat.record ? joinTurns(chat.record, await findTraces(chat.tome, chat.record)) : [];
  } catch (error) {
    Object.assign(chat, { before: [], error });
  }
  chat.redraw();
}

/** What the server has of the session of a chat: its first question fixed the system for those that follow. */
async function loadRecord(chat) {
  if (chat.session === null) return;
  try {
    chat.record = await get(tomePath(chat.tome, "sessions", chat.session));
  } catch (error) {
    chat.error = error.status === 404 ? null : error; // a session begins with its first answer
  }
  chat.redraw();
}

/** The stored questions of a session, by their number in it. Looks from the latest back, until each turn has its own. */
async function findTraces(tome, record) {
  const found = new Map();
  for (let before = undefined; before !== null && found.size < record.turns.length;) {
    const page = await get(tomePath(tome, "traces"), { before, limit: 200 });
    for (const trace of page.traces) {
      if (trace.answer.session?.name === record.name && !found.has(trace.answer.session.number)) found.set(trace.answer.session.number, trace);
    }
    before = page.next;
  }
  return found;
}

function joinTurns(record, traces) {
  const first = record.count - record.turns.length;
  return record.turns.map((turn, place) => {
    const stored = traces.get(first + place + 1);
    const trace = [turn.question, turn.asked].includes(stored?.question.text) ? stored : undefined; // a session of this name may have been deleted
    const body = { question: turn.asked, options: trace?.question.options, instructions: trace?.question.instructions, system: record.system, session: record.name };
    return { body, state: "done", text: turn.answer, answer: trace?.answer, number: trace?.number };
  });
}

/** A name for a new session: the first words of its first question. */
function nameSession(question, known) {
  const words = question.replaceAll(/[^\p{L}\p{N}\p{P} ]/gu, " ").trim().split(/\s+/);
  let name = "";
  for (const word of words) {
    if (name.length + word.length > 40) break;
    name = `${name} ${word}`.trim();
  }
  name = (name || words[0].slice(0, 40)).replace(/[?!.,;:]+$/, "") || "chat";
  const taken = new Set(known.map((each) => each.name));
  let own = name;
  for (let turn = 2; taken.has(own); turn += 1) own = `${name} ${turn}`;
  return own;
}

function Sessions({ tome, sessions, current, onStop, onForget, readOnly, error: missing }) {
  const [error, setError] = useState(null);
  const [words, setWords] = useState("");
  const list = useRef(null);
  useEffect(() => list.current?.querySelector("li:has([aria-current])")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current, sessions.length]);
  const remove = (name) => {
    onStop(name); // a session that is answering is locked
    return send("DELETE", tomePath(tome, "sessions", name)).then(
      () => onForget(name),
      (problem) => (problem.status === 404 ? onForget(name) : setError(problem)), // it had no answer yet
    );
  };
  const fitting = sessions.filter(({ name }) => name.toLowerCase().includes(words.trim().toLowerCase()));
  const isShown = (session, place) => place < MOST_SESSIONS || session.name === current;
  return html`<nav class="sessions" aria-label="Sessions">
    <a class="button small" href=${link(tome, "ask")} onClick=${() => current === null && onForget(null)} aria-current=${current === null ? "page" : undefined}>New chat</a>
    ${sessions.length > MOST_SESSIONS / 2 ? html`<input type="search" aria-label="Find a session" placeholder="Find a session" value=${words} onInput=${(event) => setWords(event.target.value)} />` : null}
    ${fitting.length ? html`<ul ref=${list}>${fitting.filter(isShown).map((session) => html`<li key=${session.name}>
      <a href=${link(tome, "ask", { session: session.name })} aria-current=${session.name === current ? "page" : undefined} title=${`${session.name}: ${count(session.count, "question")} to ${session.system}`}><span dir="auto">${session.name}</span><small>${formatCount(session.count)}</small></a>
      ${readOnly ? null : html`<${Menu} label="…" title=${`Actions for ${session.name}`} items=${[{ label: "Delete this session", danger: true, onClick: () => remove(session.name) }]} />`}
    </li>`)}</ul>` : null}
    ${fitting.length > MOST_SESSIONS ? html`<p class="soft small">and ${formatCount(fitting.length - MOST_SESSIONS)} more: find them by name</p>` : null}
    <${ErrorNotice} error=${error ?? missing} />
  </nav>`;
}

/** What one can ask, before anything was asked: questions of the sample where the tome holds it, else some about what its texts name. */
function Welcome({ data, model, tome, onAsk }) {
  const isSample = data.contents.documents.some((document) => document.id === "story.md" && document.characters > 40000);
  const sample = useGet(isSample ? "api/sample" : tomePath(tome, "suggestions"), isSample ? {} : { limit: 4 });
  const questions = useMemo(() => (isSample ? [0, 8, 16].map((at) => sample.data?.questions[at]).filter(Boolean) : sample.data?.questions ?? []), [sample.data]);
  return html`<div class="welcome"><h2>Ask about ${data.total === 1 ? "this document" : `these ${formatCount(data.total)} documents`}</h2>
    <p class="soft">Answers quote the text, and each quotation is checked to the character. What the documents do not hold is declined.</p>
    ${questions.length ? html`<ul class="suggestions">${questions.map(({ question }) => html`<li key=${question}><button type="button" onClick=${() => onAsk(question)}>${question}</button></li>`)}</ul>` : null}
    ${model === "extractive" ? html`<p class="soft small">No language model is set: this server finds and quotes, and does not write. Start it with <code>--model</code> to name one.</p>` : null}
  </div>`;
}

function Composer({ input, info, data, tome, record, busy, onAsk, onStop, form, setForm, text, setText, sources, setSources }) {
  const { choice, extras, alone } = form;
  const [open, setOpen] = useState(false);
  const [isChoosing, setIsChoosing] = useState(false);
  const change = (more) => setForm({ ...form, ...more });
  const setChoice = (chosen) => change({ choice: chosen });
  useEffect(() => { if (!document.activeElement?.closest("input, textarea, select, dialog")) input.current.focus({ preventScroll: true }); }, []); // one comes here to write
  const extra = countExtras(record ? { settings: {} } : choice, extras);
  const submit = (event) => {
    event?.preventDefault();
    if (!text.trim() || busy) return;
    setOpen(false); // the answer needs the room
    onAsk(text);
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === "Escape" && busy) onStop();
  };
  const isFixed = record !== null;
  const words = describeSources(sources);
  return html`<form class="composer" onSubmit=${submit}>
    ${open ? html`<div class="composer-more">
      ${isFixed ? html`<p class="soft">This session began with ${record.system}: its first question fixed the system, its settings and its sources.</p>` : html`
        <h2 class="minor">System</h2><${SystemList} choice=${choice} onChange=${setChoice} info=${info} data=${data} tome=${tome} />
        <${Fold} open=${Object.keys(choice.settings).length > 0} summary=${`Settings of ${choice.system}`}><${SettingsForm} choice=${choice} onChange=${setChoice} info=${info} /></${Fold}>`}
      <${ExtrasForm} extras=${extras} onChange=${(more) => change({ extras: more })} />
      ${isFixed || info.read_only ? null : html`<label class="check"><input type="checkbox" checked=${alone} onChange=${(event) => change({ alone: event.target.checked })} /> Each question alone: keep no session</label>`}
    </div>` : null}
    ${isFixed ? null : html`<${Hindrance} choice=${choice} onChange=${setChoice} info=${info} ready=${data.ready} tome=${tome} />`}
    ${isFixed || open ? null : html`<p class="composer-line soft">${describeSystem(findSystem(choice.system, info.systems))}${data.lagging?.includes(choice.system) ? html` Its memory does not know the newest documents yet: it answers all the same. <a href=${link(tome, "build", { system: choice.system })}>Bring it up to date</a>` : null}</p>`}
    <label class="hidden" for="question">Question</label>
    <div class="composer-box">
      <textarea id="question" data-first ref=${input} rows=${Math.min(8, Math.max(1, text.split("\n").length, Math.ceil(text.length / 80)))} value=${text} placeholder=${record ? "Ask a follow-up question" : "Ask a question"} maxlength="100000"
        onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
      <div class="composer-bar">
        ${isFixed ? html`<span class="system-fixed" title="The first question of the session fixed its system">${record.system}</span>` : html`<${SystemSelect} choice=${choice} onChange=${setChoice} info=${info} data=${data} />`}
        ${isFixed
          ? isAll(sources) ? null : html`<span class="system-fixed" title="The first question of the session fixed its sources">${words}</span>`
          : html`<${Button} small kind=${isAll(sources) ? "quiet" : ""} class="button small sources-button" aria-haspopup="dialog" onClick=${() => setIsChoosing(true)}><span>Sources: ${words}</span></${Button}>`}
        <${Button} small kind="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>Settings${extra ? ` (${extra})` : ""}</${Button}>
        ${busy ? html`<${Button} small onClick=${onStop}>Stop</${Button}>` : html`<button class="button small primary" disabled=${!text.trim()}>Ask</button>`}
      </div>
    </div>
  </form>
  ${isChoosing ? html`<${SourcesDialog} tome=${tome} sources=${sources} onChange=${setSources} onClose=${() => setIsChoosing(false)} />` : null}`;
}
