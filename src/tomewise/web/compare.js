// Two systems side by side: one question, both answers, what each cost and what both found.
import { Button, Empty, Fold, Head, Table, TomeError, formatCount, formatMoney, html, link, useEffect, useGet, useKept, useState } from "./parts.js";
import { tomePath } from "./api.js";
import { ExtrasForm, Hindrance, NO_EXTRAS, SettingsForm, SystemSelect, TurnView, isBusy, makeBody, readChoice, startTurn } from "./ask.js";
import { EvidenceList, listPieces } from "./trace.js";

/** One of the two sides: its turn, and what asks and stops it. */
function useSide(tome, place) {
  const own = useKept(`side ${tome} ${place}`, () => ({ turn: null, leaving: null, redraw: () => {} }));
  const ask = (body, choice) => {
    own.turn = { body, choice };
    return startTurn(own, tome, own.turn);
  };
  return { turn: own.turn, ask, stop: () => own.leaving?.abort() };
}

/** The systems at first: those of the address, then those of the comparison before, then two that show a difference. */
function chooseSystems(query, sides) {
  return [query.first, query.second].map((system, place) => (
    (!system && sides[place].turn?.choice) || readChoice(system || ["hybrid", "comorag"][place])
  ));
}

export function CompareView({ tome, query, info }) {
  const summary = useGet(tomePath(tome));
  const sides = [useSide(tome, 0), useSide(tome, 1)];
  const [question, setQuestion] = useState(query.question ?? sides[0].turn?.body.question ?? "");
  const [choices, setChoices] = useState(() => chooseSystems(query, sides));
  const [extras, setExtras] = useState(NO_EXTRAS);
  useEffect(() => { if (query.question) setQuestion(query.question); }, [query.question]);
  useEffect(() => { if (query.first || query.second) setChoices(chooseSystems(query, sides)); }, [query.first, query.second]);
  const choose = (place, choice) => setChoices(choices.map((each, at) => (at === place ? choice : each)));
  const busy = sides.some((side) => isBusy(side.turn));
  const ask = (event) => {
    event?.preventDefault();
    if (!question.trim() || busy) return;
    sides.forEach((side, place) => side.ask(makeBody(question, choices[place], extras, null), choices[place]));
  };
  const { data, error } = summary;
  const turns = sides.map((side) => side.turn);
  return html`<${Head} title="Compare two systems">One question, asked of both at the same time.</${Head}>
    <${TomeError} error=${error} retry=${summary.reload} />
    ${data && !data.total ? html`<${Empty} title="Nothing to ask about yet" actions=${html`<${Button} kind="primary" href=${link(tome)}>Add documents</${Button}>`}>This tome holds no documents.</${Empty}>` : null}
    ${data?.total ? html`<form class="compare-form" onSubmit=${ask}>
      <div class="compare-row"><textarea aria-label="Question" rows=${Math.min(6, Math.max(1, Math.ceil(question.length / (innerWidth < 760 ? 36 : 110))))} value=${question} placeholder="Ask a question of both" maxlength="100000"
        onInput=${(event) => setQuestion(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && ask(event)}></textarea>
        ${busy ? html`<${Button} onClick=${() => sides.forEach((side) => side.stop())}>Stop</${Button}>` : html`<button class="button primary" disabled=${!question.trim()}>Ask both</button>`}</div>
      <${Fold} summary="Options, instructions, limits"><div class="composer-more"><${ExtrasForm} extras=${extras} onChange=${setExtras} /></div></${Fold}>
    </form>
    <div class="sides">${sides.map((side, place) => html`<section key=${place} class="side" aria-label=${`System ${place + 1}`}>
      <div class="side-head"><${SystemSelect} label=${`System ${place + 1}`} choice=${choices[place]} info=${info} ready=${data.ready} onChange=${(choice) => choose(place, choice)} />
      </div>
      <${Hindrance} choice=${choices[place]} onChange=${(choice) => choose(place, choice)} info=${info} ready=${data.ready} tome=${tome} />
      <${Fold} summary="Settings"><${SettingsForm} choice=${choices[place]} info=${info} onChange=${(choice) => choose(place, choice)} /></${Fold}>
      ${side.turn ? html`<${TurnView} turn=${{ ...side.turn, body: { ...side.turn.body, options: [] } }} tome=${tome} onStop=${side.stop} onAgain=${() => side.ask(side.turn.body, side.turn.choice)} />` : html`<p class="soft side-empty">Its answer comes here.</p>`}
    </section>`)}</div>
    ${turns.every((turn) => turn?.answer) ? html`<${Comparison} turns=${turns} tome=${tome} />` : null}` : null}`;
}

function collectEvidence(turn) {
  const found = new Map();
  for (const event of turn.events) for (const piece of listPieces(event)) if (!found.has(piece.node)) found.set(piece.node, piece);
  return found;
}

/** Cost and evidence of both, side by side, and what both found. */
function Comparison({ turns, tome }) {
  const [first, second] = turns.map(collectEvidence);
  const common = [...first.values()].filter((piece) => second.has(piece.node));
  const cited = turns.map((turn) => new Set(turn.answer.citations.map((citation) => citation.passage)));
  const both = [...cited[0]].filter((passage) => cited[1].has(passage)).length;
  const rows = [
    ["Calls", (answer) => formatCount(answer.usage.calls)], ["Calls one after another", (answer) => formatCount(answer.usage.depth)],
    ["Tokens in", (answer) => formatCount(answer.usage.input_tokens)], ["Tokens out", (answer) => formatCount(answer.usage.output_tokens)],
    ["Money", (answer) => formatMoney(answer.usage.cost)], ["Seconds", (answer) => (answer.usage.model_seconds + answer.usage.own_seconds).toFixed(1)],
  ].map(([label, write]) => ({ label, values: turns.map((turn) => write(turn.answer)), common: "" }));
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
