// One question: its form, its turn while it is answered, and the same question asked of two systems side by side.
import {
  Button, Empty, ErrorNotice, Fold, Head, Loading, Notice, Table, TomeError,
  formatCount, formatMoney, formatSeconds, html, link, nameKey, useEffect, useGet, useKept, useState, useStored,
} from "./parts.js";
import { stream, tomePath, waitForServer } from "./api.js";
import { AnswerActions, AnswerView, CostLine, Draft, Understood, Within, listQuotes } from "./answer.js";
import { Markdown } from "./markdown.js";
import { useModel } from "./models.js";
import { ExtrasForm, Hindrance, NO_EXTRAS, SettingsForm, SystemSelect, describeSystem, letter, makeBody, readChoice } from "./systems.js";
import { EvidenceList, TraceView, listPieces } from "./trace.js";

const TRIES = 3; // times that a question is asked of a server that goes away while it answers

// ---------------------------------------------------------------- one question

/**
 * Asks, and keeps the turn as it grows: `{body, state, events, cost, draft, answer, error}`.
 * `state` is "asking", "waiting" (for a server that is gone), "done", "failed" or "stopped".
 */
async function askQuestion(tome, turn, onChange, signal) {
  for (let tries = 1; ; tries += 1) {
    Object.assign(turn, { state: "asking", events: [], cost: null, draft: "", error: null, began: Date.now() });
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
  else if (name === "cost") turn.cost = data;
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

/** How a question ended, for those who do not see it. */
function nameOutcome(answer) {
  if (answer.only_quotes) return "Nearest passages";
  return answer.resolved || answer.forced ? "Answered" : "Declined";
}

/** A question with everything that came of it. */
export function TurnView({ turn, tome, onStop, onAgain, onGuess }) {
  const { body, state, answer, error } = turn;
  const busy = isBusy(turn);
  return html`<article class="turn" aria-busy=${busy}>
    <h2 class="question" dir="auto">${body.question}</h2>
    ${body.options?.length ? html`<ol class="options-list">${body.options.map((option, place) => html`<li key=${place} dir="auto"><b>${letter(place)}</b> ${option}</li>`)}</ol>` : null}
    <${Understood} answer=${answer} asked=${body.question} /><${Within} within=${answer?.within} />
    ${turn.number ? html`<${StoredTrace} tome=${tome} number=${turn.number} />` : html`<${TraceView} events=${turn.events ?? []} live=${busy} tome=${tome} number=${answer?.trace} />`}
    ${turn.draft ? html`<${Draft} text=${turn.draft} live=${busy} />` : null}
    ${answer ? html`<${AnswerView} answer=${answer} tome=${tome} />` : null}
    ${turn.text !== undefined && !answer ? html`<div class="answer-text prose" dir="auto"><${Markdown} text=${turn.text || "Declined, or its sources were removed."} /></div>` : null}
    ${state === "waiting" ? html`<${Notice} kind="warn" title="The server went away.">The question is asked again as soon as it is back; no finished call is repeated.</${Notice}>` : null}
    ${state === "stopped" ? html`<${Notice} title="Stopped." actions=${onAgain ? html`<${Button} small onClick=${() => onAgain({})}>Ask again</${Button}>` : null}>To ask again repeats no finished call.</${Notice}>` : null}
    ${state === "failed" ? html`<${Failed} error=${error} tome=${tome} body=${body} onAgain=${onAgain} />` : null}
    <p class="hidden" role="status">${answer && turn.ended ? nameOutcome(answer) : ""}</p>
    <footer class="turn-foot">
      <span class="soft">${answer ? html`${answer.system} · <${CostLine} cost=${answer.cost} answer=${answer} />` : busy ? html`<${Elapsed} turn=${turn} />` : null}</span>
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
  return html`${turn.started?.system ?? turn.body.system ?? ""} · ${turn.cost?.calls ? html`<${CostLine} cost=${turn.cost} /> · ` : ""}<span class="number">${formatSeconds(Math.max(0, now - turn.began) / 1000)}</span>`;
}

function Failed({ error, tome, body, onAgain }) {
  const { system } = body;
  if (error.code === "estimate" && onAgain) {
    const accept = () => onAgain({ accept: undefined });
    return html`<${Notice} kind="warn" title="Not asked yet." actions=${html`<${Button} small kind="primary" onClick=${accept}>Ask for this price</${Button}>`}>This takes ${error.more.estimate.text}.</${Notice}>`;
  }
  const actions = error.code === "not_built"
    ? html`<${Button} small kind="primary" href=${link(tome, "build", { system: (system ?? "").split(/[ :]/)[0] })}>Build it</${Button}>`
    : onAgain ? html`<${Button} small onClick=${() => onAgain({})}>Ask again</${Button}>` : null;
  return html`<${Notice} kind="error" title="Not answered." actions=${actions}>${error.message}</${Notice}>`;
}

/** The events of a stored question, fetched when they are unfolded. */
function StoredTrace({ tome, number }) {
  const [open, setOpen] = useState(false);
  const { data, error } = useGet(open ? tomePath(tome, "traces", String(number)) : null);
  const waiting = data ? null : error ? html`<${ErrorNotice} error=${error} />` : html`<${Loading} />`;
  return html`<${TraceView} events=${data?.events ?? []} tome=${tome} number=${number} waiting=${waiting} onToggle=${(event) => setOpen(event.currentTarget.open)} />`;
}

// ---------------------------------------------------------------- two systems side by side

/** One of the two sides: its turn, and what asks and stops it. */
function useSide(tome, place) {
  const own = useKept(nameKey("side", tome, place), () => ({ turn: null, leaving: null, redraw: () => {} }));
  const ask = (body) => {
    own.turn = { body };
    return startTurn(own, tome, own.turn);
  };
  return { turn: own.turn, ask, stop: () => own.leaving?.abort() };
}

/** The systems at first: those of the address, then those compared before, then two that show a difference. */
function chooseSystems(query, before) {
  return [query.first, query.second].map((system, place) => (!system && before?.[place]) || readChoice(system || ["hybrid", "comorag"][place]));
}

export function CompareView({ tome, query, info }) {
  const summary = useGet(tomePath(tome));
  const sides = [useSide(tome, 0), useSide(tome, 1)];
  const [form, setForm] = useStored(nameKey("compare", tome), () => ({ question: "", choices: null, extras: NO_EXTRAS }));
  const [model] = useModel();
  const { extras } = form;
  const choices = form.choices ?? chooseSystems({}, null);
  const change = (more) => setForm({ ...form, ...more });
  useEffect(() => {
    if (query.question || query.first || query.second) change({ ...(query.question ? { question: query.question } : {}), choices: chooseSystems(query, form.choices) });
  }, [query.question, query.first, query.second]);
  const choose = (place, choice) => change({ choices: choices.map((each, at) => (at === place ? choice : each)) });
  const { question } = form;
  const busy = sides.some((side) => isBusy(side.turn));
  const ask = (event) => {
    event?.preventDefault();
    if (!question.trim() || busy) return;
    sides.forEach((side, place) => side.ask(makeBody(question, { choice: choices[place], extras, model, accept: info.limits.ask_above })));
  };
  const { data, error } = summary;
  const turns = sides.map((side) => side.turn);
  return html`<${Head} title="Compare two systems">One question, asked of both at the same time.</${Head}>
    <${TomeError} error=${error} retry=${summary.reload} />
    ${data && !data.total ? html`<${Empty} title="Nothing to ask about yet" actions=${html`<${Button} kind="primary" href=${link(tome)}>Add documents</${Button}>`}>This tome holds no documents.</${Empty}>` : null}
    ${data?.total ? html`<form class="compare-form" onSubmit=${ask}>
      <div class="compare-row"><textarea aria-label="Question" rows=${Math.min(6, Math.max(1, Math.ceil(question.length / (innerWidth < 760 ? 36 : 110))))} value=${question} placeholder="Ask a question of both" maxlength="100000"
        onInput=${(event) => change({ question: event.target.value })} onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && ask(event)}></textarea>
        ${busy ? html`<${Button} onClick=${() => sides.forEach((side) => side.stop())}>Stop</${Button}>` : html`<button class="button primary" disabled=${!question.trim()}>Ask both</button>`}</div>
      <${Fold} summary="Options, instructions, limits"><div class="composer-more"><${ExtrasForm} extras=${extras} onChange=${(more) => change({ extras: more })} /></div></${Fold}>
    </form>
    <div class="sides">${sides.map((side, place) => html`<section key=${place} class="side" aria-label=${`System ${place + 1}`}>
      <div class="side-head"><${SystemSelect} label=${`System ${place + 1}`} choice=${choices[place]} info=${info} data=${data} onChange=${(choice) => choose(place, choice)} />
      </div>
      <p class="soft small">${describeSystem(info.systems.find((system) => system.name === choices[place].system))}</p>
      <${Hindrance} choice=${choices[place]} onChange=${(choice) => choose(place, choice)} info=${info} ready=${data.ready} tome=${tome} />
      <${Fold} summary="Settings"><${SettingsForm} choice=${choices[place]} info=${info} onChange=${(choice) => choose(place, choice)} /></${Fold}>
      ${side.turn ? html`<${TurnView} turn=${{ ...side.turn, body: { ...side.turn.body, options: [] } }} tome=${tome} onStop=${side.stop} onAgain=${(more) => side.ask({ ...side.turn.body, ...more })} />` : html`<p class="soft side-empty">Its answer comes here.</p>`}
    </section>`)}</div>
    ${turns.every((turn) => turn?.answer) ? html`<${Comparison} turns=${turns} tome=${tome} />` : null}` : null}`;
}

function collectEvidence(turn) {
  const found = new Map();
  for (const event of turn.events) for (const piece of listPieces(event)) if (!found.has(piece.id)) found.set(piece.id, piece);
  return found;
}

/** Cost and evidence of both, side by side, and what both found. */
function Comparison({ turns, tome }) {
  const [first, second] = turns.map(collectEvidence);
  const common = [...first.values()].filter((piece) => second.has(piece.id));
  const cited = turns.map((turn) => new Set(listQuotes(turn.answer).map((quote) => quote.passage)));
  const both = [...cited[0]].filter((passage) => cited[1].has(passage)).length;
  const rows = [
    ["Calls", (cost) => formatCount(cost.calls)], ["Calls one after another", (cost) => formatCount(cost.depth)],
    ["Tokens in", (cost) => formatCount(cost.input_tokens)], ["Tokens out", (cost) => formatCount(cost.output_tokens)],
    ["Money", (cost) => formatMoney(cost.dollars)], ["Seconds", (cost) => (cost.model_seconds + cost.own_seconds).toFixed(1)],
  ].map(([label, write]) => ({ label, values: turns.map((turn) => write(turn.answer.cost)), common: "" }));
  rows.push({ label: "Pieces of evidence", values: [formatCount(first.size), formatCount(second.size)], common: formatCount(common.length) });
  rows.push({ label: "Passages quoted", values: cited.map((set) => formatCount(set.size)), common: formatCount(both) });
  const columns = [
    { key: "label", label: "", wide: true }, ...turns.map((turn, place) => ({ key: place, label: turn.answer.system, number: true, cell: (row) => row.values[place] })),
    { key: "common", label: "In common", number: true, cell: (row) => row.common },
  ];
  return html`<section class="stack comparison" aria-labelledby="comparison"><h2 id="comparison">Side by side</h2>
    <${Table} caption="Both systems side by side" columns=${columns} rows=${rows} rowKey=${(row) => row.label} />
    ${common.length ? html`<${Fold} summary=${`Evidence that both found (${common.length})`}><${EvidenceList} evidence=${common} tome=${tome} number=${turns[0].answer.trace} /></${Fold}>` : html`<p class="soft">They found no evidence in common.</p>`}
  </section>`;
}
