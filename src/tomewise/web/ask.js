// Asking: a chat with sessions.
import {
  Button, Empty, ErrorNotice, Loading, Menu, TomeError,
  count, formatCount, html, kept, link, useCallback, useEffect, useGet, useKept, useKeys, useMemo, useRef, useState,
} from "./parts.js";
import { get, getAll, send, tomePath } from "./api.js";
import { ExtrasForm, Hindrance, NO_EXTRAS, SettingsForm, SystemSelect, TurnView, countExtras, isBusy, makeBody, readChoice, startTurn } from "./question.js";

/** The key under which the chat of a session is kept; that of questions asked alone has no session. */
function nameChat(tome, session) {
  return `chat ${JSON.stringify([tome, session])}`;
}

/** A chat of this visit: `turns` were asked here, `before` are those that the server keeps, `record` what it has of the session. */
function makeChat(tome, session) {
  return { tome, session, turns: [], before: null, record: null, leaving: null, error: null, redraw: () => {} };
}

/** The sessions of a tome, all of them. */
function useSessions(tome) {
  const [state, setState] = useState({ sessions: [], error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    getAll(tomePath(tome, "sessions"), "sessions", { signal: leaving.signal }).then(
      (sessions) => setState({ sessions, error: null }),
      (error) => leaving.signal.aborted || setState((now) => ({ ...now, error })),
    );
    return () => leaving.abort();
  }, [tome, turn]);
  return { ...state, reload: useCallback(() => setTurn((now) => now + 1), []) };
}

/** What an address asks to be filled in, such as that of a stored question to ask again; null for none. */
function readForm(query) {
  if (!query.question) return null;
  const settings = readJson(query.settings);
  const options = readJson(query.options);
  return {
    question: query.question,
    choice: readChoice(query.system || "hybrid", settings && typeof settings === "object" && !Array.isArray(settings) ? settings : {}),
    extras: { ...NO_EXTRAS, options: Array.isArray(options) ? options.map(String) : [], instructions: query.instructions ?? "" },
  };
}

function readJson(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null; // an address can be written by anyone
  }
}

export function AskView({ tome, query, info, navigate }) {
  const session = query.session ?? null;
  const summary = useGet(tomePath(tome));
  const sessions = useSessions(tome);
  const chat = useKept(nameChat(tome, session), () => makeChat(tome, session));
  const [choice, setChoice] = useState(() => readChoice(query.system || "hybrid"));
  const [extras, setExtras] = useState(NO_EXTRAS);
  const [alone, setAlone] = useState(info.read_only);
  const [written, setWritten] = useState(""); // a question that an address wrote
  const input = useRef(null);
  const box = useRef(null);
  useEffect(() => { loadTurns(chat); }, [chat]);
  useEffect(() => {
    const form = readForm(query);
    if (!form) return;
    setWritten(form.question);
    setChoice(form.choice);
    setExtras(form.extras);
    location.replace(link(tome, "ask", { session })); // so that it is filled in once
  }, [query.question]);
  useEffect(() => { if (query.system && !query.question) setChoice(readChoice(query.system)); }, [query.system]);
  const stop = () => chat.leaving?.abort();
  useKeys("Ask", [["/", "write a question", () => input.current?.focus()], ["Escape", "stop", stop]]);

  const known = addOwn(tome, sessions.sessions);
  const record = info.read_only ? null : chat.record;
  const all = [...(chat.before ?? []), ...chat.turns];
  const busy = all.some(isBusy);
  const run = (turn, own = chat) => startTurn(own, tome, turn).then(() => turn.answer && !own.record && loadRecord(own));
  useEffect(() => { if (!busy && chat.turns.length) sessions.reload(); }, [chat, busy]);
  const begin = (body, own = chat) => {
    const turn = { body, state: "asking", events: [] };
    own.turns.push(turn);
    run(turn, own);
    requestAnimationFrame(() => box.current?.querySelector(".turn:last-of-type")?.scrollIntoView({ block: "start" }));
  };
  const ask = (question) => {
    if (!question.trim() || busy) return;
    const name = info.read_only ? null : session ?? (alone ? null : nameSession(question, known));
    const own = name && name !== session ? { ...makeChat(tome, name), before: [] } : chat;
    begin(makeBody(question, record ? null : choice, extras, name), own);
    setExtras({ ...extras, options: [] }); // they belong to this question
    if (own === chat) return;
    kept.delete(nameChat(tome, session));
    kept.set(nameChat(tome, name), own);
    navigate(link(tome, "ask", { session: name }));
  };
  /** The same question once more, with all that belonged to it, for a guess. */
  const guess = ({ body: { system, settings, session: name, ...body } }) => begin({
    ...body, ...(record ? {} : { system, settings }), ...(name && !info.read_only ? { session: name } : {}), force: true,
  });
  const stopChat = (name) => kept.get(nameChat(tome, name))?.leaving?.abort();
  const forget = (name) => {
    stopChat(name);
    kept.delete(nameChat(tome, name));
    if (name === session) navigate(link(tome, "ask"));
    sessions.reload();
  };
  const { data, error } = summary;
  const isLoading = session !== null && chat.before === null && !chat.error;
  return html`<div class="ask">
    <${Sessions} tome=${tome} sessions=${known} current=${session} onStop=${stopChat} onForget=${forget} readOnly=${info.read_only} error=${sessions.error} />
    <div class="chat" ref=${box}>
      <h1 tabindex="-1" class="hidden">${session ?? "Ask"}</h1>
      <${TomeError} error=${error} retry=${summary.reload} /><${ErrorNotice} error=${chat.error} />
      ${data && !data.total ? html`<${Empty} title="Nothing to ask about yet" actions=${html`<${Button} kind="primary" href=${link(tome)}>Add documents</${Button}>`}>This tome holds no documents.</${Empty}>` : null}
      ${data?.total && !all.length && !isLoading ? html`<${Welcome} data=${data} model=${info.model} onAsk=${ask} />` : null}
      ${isLoading ? html`<${Loading} what="Opening the session" />` : null}
      ${all.map((turn, place) => html`<${TurnView} key=${`${session} ${place}`} turn=${turn} tome=${tome}
        onAgain=${() => !busy && run(turn)} onGuess=${place === all.length - 1 && !busy ? () => guess(turn) : null} />`)}
      ${data?.total && !isLoading ? html`<${Composer} input=${input} choice=${choice} setChoice=${setChoice} extras=${extras} setExtras=${setExtras} info=${info} ready=${data.ready}
        record=${record} busy=${busy} onAsk=${ask} onStop=${stop} alone=${alone} setAlone=${setAlone} tome=${tome} written=${written} onTaken=${() => setWritten("")} />` : null}
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
      if (trace.session?.name === record.name && !found.has(trace.session.number)) found.set(trace.session.number, trace);
    }
    before = page.next;
  }
  return found;
}

function joinTurns(record, traces) {
  const first = record.count - record.turns.length;
  return record.turns.map((turn, place) => {
    const stored = traces.get(first + place + 1);
    const trace = [turn.question, turn.asked].includes(stored?.question) ? stored : undefined; // a session of this name may have been deleted
    const body = { question: turn.asked, options: trace?.options, instructions: trace?.instructions, system: record.system, session: record.name };
    return { body, state: "done", text: turn.answer, answer: trace, number: trace?.id };
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
  const list = useRef(null);
  useEffect(() => list.current?.querySelector("li:has([aria-current])")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current, sessions.length]);
  const remove = (name) => {
    onStop(name); // a session that is answering is locked
    return send("DELETE", tomePath(tome, "sessions", name)).then(
      () => onForget(name),
      (problem) => (problem.status === 404 ? onForget(name) : setError(problem)), // it had no answer yet
    );
  };
  return html`<nav class="sessions" aria-label="Sessions">
    <a class="button small" href=${link(tome, "ask")} onClick=${() => current === null && onForget(null)} aria-current=${current === null ? "page" : undefined}>New chat</a>
    ${sessions.length ? html`<ul ref=${list}>${sessions.map((session) => html`<li key=${session.name}>
      <a href=${link(tome, "ask", { session: session.name })} aria-current=${session.name === current ? "page" : undefined} title=${`${session.name}: ${count(session.count, "question")} to ${session.system}`}><span dir="auto">${session.name}</span><small>${formatCount(session.count)}</small></a>
      ${readOnly ? null : html`<${Menu} label="…" title=${`Actions for ${session.name}`} items=${[{ label: "Delete this session", danger: true, onClick: () => remove(session.name) }]} />`}
    </li>`)}</ul>` : null}
    <${ErrorNotice} error=${error ?? missing} />
  </nav>`;
}

/** What one can ask, before anything was asked; questions of the sample, where the tome holds it. */
function Welcome({ data, model, onAsk }) {
  const isSample = data.documents.some((document) => document.id === "story.md" && document.characters > 40000);
  const sample = useGet(isSample ? "api/sample" : null);
  const questions = useMemo(() => [0, 8, 16].map((at) => sample.data?.questions[at]).filter(Boolean), [sample.data]);
  return html`<div class="welcome"><h2>Ask about ${data.total === 1 ? "this document" : `these ${formatCount(data.total)} documents`}</h2>
    <p class="soft">Answers quote the text, and each quotation is checked to the character. What the documents do not hold is declined.</p>
    ${questions.length ? html`<ul class="suggestions">${questions.map(({ question }) => html`<li key=${question}><button type="button" onClick=${() => onAsk(question)}>${question}</button></li>`)}</ul>` : null}
    ${model === "extractive" ? html`<p class="soft small">No language model is set: this server finds and quotes, and does not write. Start it with <code>--model</code> to name one.</p>` : null}
  </div>`;
}

function Composer({ input, choice, setChoice, extras, setExtras, info, ready, record, busy, onAsk, onStop, alone, setAlone, tome, written, onTaken }) {
  const [text, setText] = useState("");
  useEffect(() => {
    if (!written) return;
    setText(written);
    onTaken();
    input.current.focus();
  }, [written]);
  const [open, setOpen] = useState(false);
  const extra = countExtras(record ? { settings: {} } : choice, extras);
  const submit = (event) => {
    event?.preventDefault();
    if (!text.trim() || busy) return;
    onAsk(text);
    setText("");
    setOpen(false); // the answer needs the room
  };
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === "Escape" && busy) onStop();
  };
  return html`<form class="composer" onSubmit=${submit}>
    ${open ? html`<div class="composer-more">
      <${ExtrasForm} extras=${extras} onChange=${setExtras} />
      ${record || info.read_only ? null : html`<label class="check"><input type="checkbox" checked=${alone} onChange=${(event) => setAlone(event.target.checked)} /> Each question alone: keep no session</label>`}
      ${record ? html`<p class="soft">This session began with ${record.system}: its first question fixed the system and its settings.</p>` : html`<${SettingsForm} choice=${choice} onChange=${setChoice} info=${info} />`}
    </div>` : null}
    ${record ? null : html`<${Hindrance} choice=${choice} onChange=${setChoice} info=${info} ready=${ready} tome=${tome} />`}
    <label class="hidden" for="question">Question</label>
    <textarea id="question" ref=${input} rows=${Math.min(8, Math.max(1, text.split("\n").length, Math.ceil(text.length / 80)))} value=${text} placeholder=${record ? "Ask a follow-up question" : "Ask a question"} maxlength="100000"
      onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
    <div class="composer-bar">
      ${record ? html`<span class="system-fixed" title="The first question of the session fixed its system">${record.system}</span>` : html`<${SystemSelect} choice=${choice} onChange=${setChoice} info=${info} ready=${ready} />`}
      <${Button} small kind="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>Settings${extra ? ` (${extra})` : ""}</${Button}>
      ${busy ? html`<${Button} small onClick=${onStop}>Stop</${Button}>` : html`<button class="button small primary" disabled=${!text.trim()}>Ask</button>`}
    </div>
  </form>`;
}
