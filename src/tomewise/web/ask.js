// Asking: a chat with sessions; and the question, its forms and its turn, which a comparison uses too.
import {
  Button, Empty, ErrorNotice, Field, Loading, Menu, NoSystem, Notice, TomeError,
  count, findSystem, formatCount, formatSeconds, html, kept, link, useCallback, useEffect, useGet, useKept, useKeys, useMemo, useRef, useState,
} from "./parts.js";
import { get, getAll, send, stream, tomePath, waitForServer } from "./api.js";
import { AnswerActions, AnswerView, Draft, TraceView, Understood, UsageLine } from "./trace.js";

const TRIES = 3; // times that a question is asked of a server that goes away while it answers

// ---------------------------------------------------------------- one question

/**
 * Asks, and keeps the turn as it grows: `{body, state, events, usage, draft, answer, error}`.
 * `state` is "asking", "waiting" (for a server that is gone), "done", "failed" or "stopped".
 */
async function askQuestion(tome, turn, onChange, signal) {
  for (let tries = 1; ; tries += 1) {
    Object.assign(turn, { state: "asking", events: [], usage: null, draft: "", error: null, began: Date.now() });
    onChange();
    try {
      for await (const { name, data } of stream(tomePath(tome, "ask"), { method: "POST", body: turn.body, signal })) {
        takeEvent(turn, name, data);
        onChange();
      }
      if (turn.error) throw turn.error;
      if (!turn.answer) throw { code: "gone", message: "The server ended before the answer was there." };
      turn.state = "done";
    } catch (error) {
      if (error.name === "AbortError") turn.state = "stopped";
      else if (["gone", "stopping"].includes(error.code) && tries < TRIES && !signal.aborted) {
        turn.state = "waiting";
        onChange();
        await waitForServer(signal).catch(() => {});
        if (!signal.aborted) continue;
        turn.state = "stopped";
      } else Object.assign(turn, { state: "failed", error, draft: "" });
    }
    turn.ended = Date.now();
    onChange();
    return;
  }
}

function takeEvent(turn, name, data) {
  if (name === "started") turn.started = data;
  else if (name === "usage") turn.usage = data;
  else if (name === "answer_part") turn.draft = data.replace ? data.text : turn.draft + data.text;
  else if (name === "answer") Object.assign(turn, { answer: data, draft: "" });
  else if (name === "error") turn.error = { ...data.error, more: data };
  else turn.events = [...turn.events, { name, ...data }];
}

/** Ask what a turn holds. `own` is what is kept: its `leaving` stops the question. */
export function startTurn(own, tome, turn) {
  own.leaving = new AbortController();
  return askQuestion(tome, turn, () => own.redraw(), own.leaving.signal);
}

export function isBusy(turn) {
  return turn?.state === "asking" || turn?.state === "waiting";
}

/** A question with everything that came of it. */
export function TurnView({ turn, tome, onStop, onAgain, onGuess }) {
  const { body, state, answer, error } = turn;
  const busy = isBusy(turn);
  return html`<article class="turn" aria-busy=${busy}>
    <h2 class="question" dir="auto">${body.question}</h2>
    ${body.options?.length ? html`<ol class="options-list">${body.options.map((option, place) => html`<li key=${place} dir="auto"><b>${letter(place)}</b> ${option}</li>`)}</ol>` : null}
    <${Understood} answer=${answer} asked=${body.question} />
    ${turn.number ? html`<${StoredTrace} tome=${tome} number=${turn.number} />` : html`<${TraceView} events=${turn.events ?? []} live=${busy} tome=${tome} number=${answer?.trace} />`}
    ${turn.draft ? html`<${Draft} text=${turn.draft} />` : null}
    ${answer ? html`<${AnswerView} answer=${answer} tome=${tome} />` : null}
    ${turn.text !== undefined && !answer ? html`<p class="answer-text" dir="auto">${turn.text || "Declined, or its sources were removed."}</p>` : null}
    ${state === "waiting" ? html`<${Notice} kind="warn" title="The server went away.">The question is asked again as soon as it is back; no finished call is repeated.</${Notice}>` : null}
    ${state === "stopped" ? html`<${Notice} title="Stopped." actions=${onAgain ? html`<${Button} small onClick=${onAgain}>Ask again</${Button}>` : null}>To ask again repeats no finished call.</${Notice}>` : null}
    ${state === "failed" ? html`<${Failed} error=${error} tome=${tome} system=${body.system} onAgain=${onAgain} />` : null}
    <p class="hidden" role="status">${answer && turn.ended ? (answer.resolved || answer.forced ? "Answered" : "Declined") : ""}</p>
    <footer class="turn-foot">
      <span class="soft">${answer ? html`${answer.system} · <${UsageLine} usage=${answer.usage} />` : busy ? html`<${Elapsed} turn=${turn} />` : null}</span>
      ${busy && onStop ? html`<${Button} small onClick=${onStop}>Stop</${Button}>` : answer ? html`<${AnswerActions} answer=${answer} tome=${tome} question=${body.question} onGuess=${onGuess} />` : null}
    </footer>
  </article>`;
}

function Elapsed({ turn }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const clock = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(clock);
  }, []);
  return html`${turn.started?.system ?? turn.body.system ?? ""} · ${turn.usage ? html`<${UsageLine} usage=${turn.usage} /> · ` : ""}<span class="number">${formatSeconds(Math.max(0, now - turn.began) / 1000)}</span>`;
}

function Failed({ error, tome, system, onAgain }) {
  const actions = error.code === "not_built"
    ? html`<${Button} small kind="primary" href=${link(tome, "build", { system: (system ?? "").split(/[ :]/)[0] })}>Build it</${Button}>`
    : onAgain ? html`<${Button} small onClick=${onAgain}>Ask again</${Button}>` : null;
  return html`<${Notice} kind="error" title="Not answered." actions=${actions}>${error.message}</${Notice}>`;
}

/** The events of a stored question, fetched when they are unfolded. */
function StoredTrace({ tome, number }) {
  const [open, setOpen] = useState(false);
  const { data, error } = useGet(open ? tomePath(tome, "traces", String(number)) : null);
  const waiting = data ? null : error ? html`<${ErrorNotice} error=${error} />` : html`<${Loading} />`;
  return html`<${TraceView} events=${data?.events ?? []} tome=${tome} number=${number} waiting=${waiting} onToggle=${(event) => setOpen(event.currentTarget.open)} />`;
}

function letter(place) {
  return String.fromCharCode(65 + place);
}

// ---------------------------------------------------------------- system, settings, options

/** `choice` is `{system, variant, settings}`; the name that is sent has the variant behind a colon. */
function nameSystem(choice) {
  return choice.variant ? `${choice.system}:${choice.variant}` : choice.system;
}

/** The choice that such a name makes. */
export function readChoice(name, settings = {}) {
  const [system, variant = ""] = name.split(/:(.*)/s);
  return { system, variant, settings };
}

/** What keeps a chosen system from answering: no such system, or memory that it needs and that is not built. */
export function Hindrance({ choice, onChange, info, ready, tome }) {
  const known = findSystem(choice.system, info.systems);
  if (!known) return html`<${NoSystem} name=${choice.system} systems=${info.systems} onTake=${(name) => onChange(readChoice(name))} />`;
  if (ready.includes(known.name)) return null;
  return html`<p class="composer-note">${choice.system} needs memory that is not built yet. <a href=${link(tome, "build", { system: choice.system })}>See what it costs</a></p>`;
}

export function SystemSelect({ choice, onChange, info, ready, label = "System", locked }) {
  const groups = [["Ready", info.systems.filter((system) => ready.includes(system.name))], ["Needs a build first", info.systems.filter((system) => !ready.includes(system.name))]];
  return html`<select aria-label=${label} class="system" disabled=${Boolean(locked)} value=${choice.system} title=${locked || undefined}
    onChange=${(event) => onChange(readChoice(event.target.value))}>
    ${groups.map(([title, systems]) => systems.length ? html`<optgroup key=${title} label=${title}>${systems.map((system) => html`<option key=${system.name} value=${system.name}>${system.name}</option>`)}</optgroup>` : null)}
    ${info.systems.some((system) => system.name === choice.system) ? null : html`<option value=${choice.system}>${choice.system}</option>`}
  </select>`;
}

/** Fields for the settings of a system, made from what it says of them. A field left as it is keeps the default. */
export function SettingsForm({ choice, onChange, info }) {
  const system = info.systems.find((each) => each.name === choice.system);
  if (!system) return html`<p class="soft">The settings of ${choice.system} are not listed here.</p>`;
  const put = (name, value) => {
    const { [name]: _, ...rest } = choice.settings;
    onChange({ ...choice, settings: value === undefined ? rest : { ...rest, [name]: value } });
  };
  const variants = Object.keys(system.ablations ?? {});
  return html`<div class="settings"><h2 class="minor">Settings of ${choice.system}</h2>
    <p class="soft">${system.description.split("\n\n")[0]} ${system.ask?.formula ? `Calls for a question: ${system.ask.formula}.` : ""}</p>
    <div class="fields">
      ${variants.length ? html`<${Field} label="variant"><select value=${choice.variant} onChange=${(event) => onChange({ ...choice, variant: event.target.value })}>
        <option value="">as it is</option>${variants.map((name) => html`<option key=${name}>${name}</option>`)}</select></${Field}>` : null}
      ${system.settings.map((setting) => html`<${SettingField} key=${`${choice.system} ${setting.name}`} setting=${setting} value=${choice.settings[setting.name]} onChange=${(value) => put(setting.name, value)} />`)}
    </div>
  </div>`;
}

function SettingField({ setting, value, onChange }) {
  const { name, type } = setting;
  const fallback = setting.default;
  const shown = fallback === null || fallback === undefined ? "its own" : String(fallback);
  const allowed = type.startsWith('"') ? type.split(" | ").map((each) => JSON.parse(each)) : type === "boolean" ? [true, false] : null;
  if (allowed) {
    return html`<${Field} label=${name}><select class=${value === undefined ? "soft" : ""} value=${value === undefined ? "" : String(value)} onChange=${(event) => onChange(allowed.find((each) => String(each) === event.target.value))}>
      <option value="">${shown}</option>${allowed.filter((each) => each !== fallback).map((each) => html`<option key=${each} value=${String(each)}>${String(each)}</option>`)}</select></${Field}>`;
  }
  const isNumber = /^(integer|number|float|int)\b/.test(type);
  const [, least] = /from (-?[\d.]+)/.exec(type) ?? [];
  const [, most] = /to (-?[\d.]+)/.exec(type) ?? [];
  const read = (text) => (text === "" ? undefined : isNumber ? Number(text) : text);
  return html`<${Field} label=${name} hint=${most || !/^(integer|number) from 0$|^string$/.test(type) ? type : null}><input type=${isNumber ? "number" : "text"} step=${type.startsWith("int") ? 1 : "any"} min=${least} max=${most}
    value=${value ?? ""} placeholder=${shown} onInput=${(event) => onChange(read(event.target.value))} /></${Field}>`;
}

function OptionsForm({ options, onChange }) {
  const box = useRef(null);
  const put = (place, text) => onChange(options.map((option, at) => (at === place ? text : option)));
  const add = () => {
    if (options.length < 26) onChange([...options, ""]);
    requestAnimationFrame(() => box.current?.querySelector(".option:last-of-type input")?.focus());
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // the form asks a question, which an option is not
    add();
  };
  return html`<fieldset class="stack" ref=${box}><legend class="field-label">Options to choose from</legend>
    ${options.map((option, place) => html`<div class="option" key=${place}><b>${letter(place)}</b>
      <input aria-label=${`Option ${letter(place)}`} value=${option} onInput=${(event) => put(place, event.target.value)} onKeyDown=${onKey} />
      <${Button} small kind="quiet" aria-label=${`Remove option ${letter(place)}`} onClick=${() => onChange(options.filter((_, at) => at !== place))}>×</${Button}></div>`)}
    ${options.length < 26 ? html`<${Button} small onClick=${add}>Add option ${letter(options.length)}</${Button}>` : null}
  </fieldset>`;
}

export const NO_EXTRAS = { options: [], instructions: "", calls: "", cost: "" };

export function ExtrasForm({ extras, onChange }) {
  const put = (name) => (event) => onChange({ ...extras, [name]: event.target.value });
  return html`<div class="extras">
    <${OptionsForm} options=${extras.options} onChange=${(options) => onChange({ ...extras, options })} />
    <div class="stack">
      <${Field} label="Instructions" hint="How to answer, such as “in one word”."><textarea rows="2" value=${extras.instructions} onInput=${put("instructions")}></textarea></${Field}>
      <div class="fields pair">
        <${Field} label="Calls at most"><input type="number" min="0" step="1" value=${extras.calls} placeholder="no limit" onInput=${put("calls")} /></${Field}>
        <${Field} label="Dollars at most"><input type="number" min="0" step="any" value=${extras.cost} placeholder="no limit" onInput=${put("cost")} /></${Field}>
      </div>
    </div>
  </div>`;
}

/** The request body of a question. */
export function makeBody(question, choice, extras, session) {
  const options = extras.options.map((option) => option.trim()).filter(Boolean);
  return {
    question: question.trim(),
    ...(choice ? { system: nameSystem(choice), settings: choice.settings } : {}),
    ...(options.length ? { options } : {}),
    ...(extras.instructions.trim() ? { instructions: extras.instructions.trim() } : {}),
    ...(session ? { session } : {}),
    ...(extras.calls === "" ? {} : { max_calls: Number(extras.calls) }),
    ...(extras.cost === "" ? {} : { max_cost: Number(extras.cost) }),
  };
}

function countExtras(choice, extras) {
  return Object.keys(choice.settings).length + (choice.variant ? 1 : 0) + extras.options.filter(Boolean).length
    + ["instructions", "calls", "cost"].filter((name) => extras[name] !== "").length;
}

// ---------------------------------------------------------------- the chat

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
    return { body, state: "done", text: turn.answer, answer: trace, number: trace?.number };
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
