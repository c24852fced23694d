// What is kept: the questions of a tome with how they were answered, and experiments with their tables and plots.
import { Button, Dialog, Empty, ErrorNotice, Field, Fold, Head, Loading, Missing, Money, Table, Tag, Time, count, formatCount, html, link, useGet, useKeys, usePages, useState } from "./parts.js";
import { send, tomePath } from "./api.js";
import { AnswerActions, AnswerView, CostLine, Understood, Within, nameDoubt } from "./answer.js";
import { describeModel } from "./models.js";
import { readScope } from "./sources.js";
import { TraceView, listPieces } from "./trace.js";

const PAGE = 20;
const QUESTIONS = 50;

// ---------------------------------------------------------------- history

/** The stored questions of a tome, one of them, or two side by side. */
export function HistoryView({ tome, query, rest, navigate, info }) {
  if (rest[0]) return html`<${StoredTrace} key=${rest[0]} tome=${tome} number=${rest[0]} navigate=${navigate} info=${info} />`;
  if (query.first && query.second) return html`<${TwoTraces} tome=${tome} numbers=${[query.first, query.second]} />`;
  return html`<${TraceList} tome=${tome} navigate=${navigate} info=${info} />`;
}

function TraceList({ tome, navigate, info }) {
  const [chosen, setChosen] = useState([]);
  const [leaving, setLeaving] = useState(null);
  const [words, setWords] = useState("");
  const { rows, next, error, busy, more, put } = usePages(tomePath(tome, "traces"), "traces", "before", { q: words.trim(), limit: PAGE });
  const choose = (number) => setChosen((now) => (now.includes(number) ? now.filter((each) => each !== number) : [...now, number].slice(-2)));
  const compare = () => chosen.length === 2 && navigate(link(tome, "history", { first: Math.min(...chosen), second: Math.max(...chosen) }));
  useKeys("History", [["c", "compare the two chosen questions", compare]]);
  const columns = [
    { key: "chosen", label: html`<span class="hidden">Compare</span>`, cell: (row) => html`<input type="checkbox" aria-label=${`Choose question ${row.number} to compare`} checked=${chosen.includes(row.number)} onChange=${() => choose(row.number)} />` },
    { key: "question", label: "Question", wide: true, cell: (row) => html`<a href=${link(tome, "history", {}, String(row.number))} dir="auto">${row.question.text}</a><p class="soft one-line" dir="auto">${describeAnswer(row.answer)}</p>` },
    { key: "system", label: "System", cell: (row) => row.answer.system },
    { key: "calls", label: "Calls", number: true, extra: true, cell: (row) => formatCount(row.answer.cost.calls) },
    { key: "cost", label: "Cost", number: true, extra: true, cell: (row) => html`<${Money} value=${row.answer.cost.dollars} />` },
    { key: "asked", label: "Asked", extra: true, cell: (row) => html`<${Time} value=${row.asked} />` },
    info.read_only ? null : { key: "delete", label: html`<span class="hidden">Delete</span>`, cell: (row) => html`<${Button} small kind="quiet" aria-label=${`Delete question ${row.number}`} onClick=${() => setLeaving(row)}>×</${Button}>` },
  ].filter(Boolean);
  return html`
    <${Head} title="History" actions=${rows?.length > 1 ? html`<${Button} disabled=${chosen.length < 2} onClick=${compare}>Compare two</${Button}>` : null}>Every question is kept with the way it was answered.${rows?.length > 1 ? " Tick two to compare them." : ""}</${Head}>
    ${rows?.length || words ? html`<${Field} label="Find in questions and answers"><input type="search" value=${words} onInput=${(event) => setWords(event.target.value)} /></${Field}>` : null}
    <${ErrorNotice} error=${error} retry=${more} />
    ${rows || error ? null : html`<${Loading} />`}
    ${rows && !rows.length && !next && words ? html`<p class="soft" role="status">No question or answer has all of these words.</p>` : null}
    ${rows && !rows.length && !next && !words ? html`<${Empty} title="No questions yet" actions=${html`<${Button} kind="primary" href=${link(tome, "ask")}>Ask</${Button}>`}>Questions and their answers appear here as soon as one is asked.</${Empty}>` : null}
    ${rows?.length ? html`<${Table} caption="Questions, newest first" columns=${columns} rows=${rows} rowKey=${(row) => row.number} />` : null}
    ${next ? html`<${Button} disabled=${busy} onClick=${more}>Show older ones</${Button}>` : null}
    ${leaving ? html`<${DeleteTrace} tome=${tome} trace=${leaving} onClose=${() => setLeaving(null)} onDone=${() => { setLeaving(null); setChosen([]); put(rows.filter((row) => row !== leaving)); }} />` : null}`;
}

function describeAnswer(answer) {
  return [nameDoubt(answer), answer.only_quotes ? `“${answer.statements[0].text}”` : answer.text || answer.missing].filter(Boolean).join(": ");
}

function DeleteTrace({ tome, trace, onClose, onDone }) {
  const [error, setError] = useState(null);
  const remove = () => send("DELETE", tomePath(tome, "traces", String(trace.number))).then(onDone, setError);
  return html`<${Dialog} title=${`Delete question ${trace.number}?`} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Keep it</${Button}><${Button} kind="danger" onClick=${remove}>Delete</${Button}>`}>
    <p dir="auto">${trace.question.text}</p><p class="soft">Its answer and its trace go with it. The documents stay as they are.</p><${ErrorNotice} error=${error} /></${Dialog}>`;
}

/** The address at which the form of a stored question is filled in again. */
export function linkAgain(tome, { question: { text, options, instructions, within }, answer }) {
  const { name, settings } = readSystem(answer.system);
  const put = (value) => (Object.keys(value).length ? JSON.stringify(value) : "");
  const { documents, where } = readScope(within);
  return link(tome, "ask", { question: text, options: put(options), instructions, system: name, settings: put(settings), documents: put(documents), where: put(where) });
}

/** The name of a system and its settings, of the text that names both as a shell quotes it: `raptor 'depth=2'`. */
function readSystem(text) {
  const words = (text.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, (_, one, two) => one ?? two));
  const pairs = words.filter((word) => /^\w+=/.test(word)).map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]);
  return { name: words.slice(0, words.length - pairs.length).join(" "), settings: Object.fromEntries(pairs.map(([key, value]) => [key, readValue(value)])) };
}

function readValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text; // as the command line reads it: what is no JSON is a string
  }
}

function StoredTrace({ tome, number, navigate, info }) {
  const [leaves, setLeaves] = useState(false);
  const { data: trace, error } = useGet(tomePath(tome, "traces", number));
  const again = trace ? linkAgain(tome, trace) : "";
  const { question, answer } = trace ?? {};
  const lost = (trace?.cut ?? []).filter((what) => !what.startsWith("texts of evidence")); // the tome itself has those
  useKeys("Stored question", [["a", "ask again", () => again && navigate(again)]]);
  if (!trace) return html`<${Head} title=${`Question ${number}`} />${error ? html`<${NoTrace} error=${error} tome=${tome} />` : html`<${Loading} />`}`;
  return html`
    <${Head} title=${question.text} actions=${html`<${Button} href=${again}>Ask again</${Button}>
      ${info.read_only ? null : html`<${Button} kind="danger" onClick=${() => setLeaves(true)}>Delete</${Button}>`}`}>
      Question ${number}, answered by ${answer.system} with ${describeModel(answer.model)}, <${Time} value=${trace.asked} /></${Head}>
    ${question.options.length ? html`<ol class="options">${question.options.map((option, place) => html`<li key=${place}><b>${"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[place]}</b> <span dir="auto">${option}</span></li>`)}</ol>` : null}
    <${Understood} answer=${answer} asked=${question.text} />
    <${Within} within=${question.within} />
    <h2 class="hidden">Answer</h2><${AnswerView} answer=${answer} tome=${tome} />
    <p class="between"><${CostLine} cost=${answer.cost} answer=${answer} /><${AnswerActions} answer=${answer} tome=${tome} question=${question.text} /></p>
    ${lost.length ? html`<p class="soft">To stay small, the stored trace left out: ${lost.join(", ")}.</p>` : null}
    <${TraceView} events=${trace.events} tome=${tome} number=${number} open />
    ${leaves ? html`<${DeleteTrace} tome=${tome} trace=${trace} onClose=${() => setLeaves(false)} onDone=${() => navigate(link(tome, "history"))} />` : null}`;
}

function NoTrace({ error, tome }) {
  return html`<${Missing} error=${error} title="No question of this number is kept" back=${link(tome, "history")} words="See the history">It may have been deleted, or it was asked of another tome.</${Missing}>`;
}

function TwoTraces({ tome, numbers }) {
  const sides = numbers.map((number) => useGet(tomePath(tome, "traces", number)));
  const shown = sides.map(({ data }) => new Set((data?.events ?? []).flatMap(listPieces).map((piece) => piece.id)));
  const both = [...shown[0]].filter((node) => shown[1].has(node)).length;
  const [first, second] = sides.map(({ data }) => data);
  const isSame = Boolean(first && first.question.text === second?.question.text);
  return html`
    <${Head} title=${isSame ? first.question.text : "Two answers"}>${first && second ? `Evidence: ${count(both, "piece")} in common; ${formatCount(shown[0].size - both)} and ${formatCount(shown[1].size - both)} found by one alone.` : null}</${Head}>
    <div class="twin">${sides.map(({ data, error }, place) => html`<section key=${numbers[place]} class="stack">
      <${NoTrace} error=${error} tome=${tome} />
      ${data ? html`<h2 dir="auto"><a href=${link(tome, "history", {}, numbers[place])}>${isSame ? data.answer.system : data.question.text}</a></h2><p class="soft">${[`Question ${numbers[place]}`, !isSame && data.answer.system, describeModel(data.answer.model)].filter(Boolean).join(" · ")}</p>
        <${AnswerView} answer=${data.answer} tome=${tome} /><p><${CostLine} cost=${data.answer.cost} answer=${data.answer} /></p><${TraceView} events=${data.events} tome=${tome} number=${numbers[place]} />` : null}
    </section>`)}</div>`;
}

// ---------------------------------------------------------------- evaluations

/** The experiments of the folder that the server was given, one of them, or one question to two systems. */
export function EvaluationsView({ query, rest, navigate }) {
  if (rest[0] && query.question) return html`<${TwoAnswers} name=${rest[0]} query=${query} navigate=${navigate} />`;
  if (rest[0]) return html`<${Evaluation} key=${rest[0]} name=${rest[0]} query=${query} navigate=${navigate} />`;
  return html`<${EvaluationList} />`;
}

function EvaluationList() {
  const { data, error, reload } = useGet("api/evaluations");
  const columns = [
    { key: "name", label: "Experiment", wide: true, cell: (row) => html`<a href=${link(null, "evaluations", {}, row.name)}>${row.name}</a>` },
    { key: "dataset", label: "Data" }, { key: "model", label: "Model", short: true }, { key: "embedder", label: "Embedder", short: true, extra: true },
    { key: "systems", label: "Systems", number: true, extra: true, cell: (row) => row.systems.length },
    { key: "run", label: "Last run", cell: (row) => html`<${Time} value=${row.run} />` },
  ];
  return html`
    <${Head} title="Evaluations">Systems compared on questions whose answers are known.</${Head}>
    <${ErrorNotice} error=${error} retry=${reload} />
    ${data && !data.evaluations.length ? html`<${Empty} title="No experiments here">Run one with <code>tome eval run naive hybrid --data sample</code>, and start the server with <code>--evaluations FOLDER</code>.</${Empty}>` : null}
    ${data?.evaluations.length ? html`<${Table} caption="Experiments, the latest first" columns=${columns} rows=${data.evaluations} rowKey=${(row) => row.name} />` : data || error ? null : html`<${Loading} />`}`;
}

function Evaluation({ name, query, navigate }) {
  const path = `api/evaluations/${encodeURIComponent(name)}`;
  const { data, error } = useGet(path, { limit: 0, baseline: query.baseline, by: query.by });
  const [picked, setPicked] = useState("");
  const change = (more) => navigate(link(null, "evaluations", { baseline: query.baseline, by: query.by, ...more }, name));
  if (!data) return html`<${Head} title=${name} />${error ? html`<${NoExperiment} error=${error} />` : html`<${Loading} what="Computing the table" />`}`;
  const { table } = data;
  const metric = picked || table.metrics[0];
  const systems = table.rows.map((row) => row.system);
  const parts = Object.entries(table.slices?.[query.by] ?? {});
  return html`
    <${Head} title=${table.dataset}>${[table.experiment, table.model, table.embedder, table.retrieval_only && "retrieval alone"].filter(Boolean).join(" · ")}</${Head}>
    <div class="actions choices">
      <${Field} label="Test against"><${Choice} value=${query.baseline ?? ""} none="no baseline" values=${systems} onChange=${(baseline) => change({ baseline })} /></${Field}>
      <${Field} label="By slice"><${Choice} value=${query.by ?? ""} none="all questions" values=${data.slices} onChange=${(by) => change({ by })} /></${Field}>
      <${Field} label="Plots of"><${Choice} value=${metric} values=${table.metrics} onChange=${setPicked} /></${Field}>
    </div>
    <${Scores} table=${table} rows=${table.rows} caption="Scores in percent, with 95 % intervals" />
    <div class="plots"><${Intervals} title=${`${metric} with 95 % intervals`} rows=${table.rows} metric=${metric} />
      <${CostPlot} rows=${table.rows} metric=${metric} />
      ${table.risk_of ? html`<${RiskPlot} rows=${table.rows} metric=${table.risk_of} />` : null}</div>
    ${parts.length ? html`<h2>${metric} by ${query.by}</h2>
      <div class="plots">${parts.map(([value, rows]) => html`<${Intervals} key=${value} title=${`${value} (${count(rows[0].n, "question")})`} rows=${rows} metric=${metric} all=${systems} />`)}</div>
      <div>${parts.map(([value, rows]) => html`<${Fold} key=${value} summary=${`All scores for ${query.by}: ${value}`}><${Scores} table=${table} rows=${rows} caption=${`Scores for ${query.by}: ${value}`} /></${Fold}>`)}</div>` : null}
    <${Costs} rows=${table.rows} />
    <ul class="soft footnotes">${table.notes.map((note) => html`<li key=${note}>${note}</li>`)}</ul>
    <${Questions} name=${name} path=${path} />`;
}

function NoExperiment({ error }) {
  return html`<${Missing} error=${error} title="No experiment of this name is here" back=${link(null, "evaluations")} words="See all experiments">The server reads those of the folder that it was started with.</${Missing}>`;
}

function Choice({ value, values, none, onChange }) {
  return html`<select value=${value} onChange=${(event) => onChange(event.target.value)}>${none ? html`<option value="">${none}</option>` : null}${values.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select>`;
}

function percent(value) {
  return value === null || value === undefined ? "–" : (100 * value).toFixed(1);
}

function Scores({ table, rows, caption }) {
  const best = (metric) => {
    const values = rows.filter((row) => row.ranked_by !== "shown" && row[metric] !== null).map((row) => percent(row[metric]));
    return new Set(values).size > 1 ? Math.max(...values).toFixed(1) : null;
  };
  const bests = Object.fromEntries(table.metrics.map((metric) => [metric, best(metric)]));
  const mark = (row, metric) => (row.p_holm[metric] < 0.01 ? "‡" : row.p_holm[metric] < 0.05 ? "†" : "");
  const columns = [
    { key: "system", label: "System", cell: (row) => html`<span class="system">${row.system}</span>` }, { key: "n", label: "n", number: true },
    ...(rows.some((row) => row.failed) ? [{ key: "failed", label: "failed", number: true }] : []),
    ...table.metrics.map((metric) => ({ key: metric, label: metric, number: true, cell: (row) => html`<span class=${percent(row[metric]) === bests[metric] ? "best" : ""}>${percent(row[metric])}</span>${mark(row, metric)}
      ${row.ci[metric] ? html`<span class="interval">${row.ci[metric].map(percent).join("–")}</span>` : null}` })),
  ];
  return html`<${Table} caption=${caption} showCaption columns=${columns} rows=${rows} rowKey=${(row) => row.system} />`;
}

const COSTS = { calls: "calls", "tokens in": "input_tokens", "tokens out": "output_tokens", "model s": "model_seconds", "own s": "own_seconds", path: "depth" };

function Costs({ rows }) {
  const columns = [
    { key: "system", label: "System" },
    ...Object.entries(COSTS).map(([label, key]) => ({ key, label, number: true, cell: (row) => formatCount(Number(row.per_question[key].toFixed(key.endsWith("tokens") ? 0 : 1))) })),
    { key: "dollars", label: "$", number: true, cell: (row) => html`<${Money} value=${row.per_question.dollars} />` },
  ];
  return html`<${Table} caption="Cost of one question" showCaption columns=${columns} rows=${rows} rowKey=${(row) => row.system} />`;
}

function Questions({ name, path }) {
  const [limit, setLimit] = useState(QUESTIONS);
  const [pair, setPair] = useState([]);
  const { data, error } = useGet(`${path}/questions`, { limit });
  if (!data) return html`<${ErrorNotice} error=${error} />`;
  const [first, second] = [pair[0] ?? data.systems[0], pair[1] ?? data.systems[1] ?? data.systems[0]];
  const columns = [
    { key: "question", label: "Question", wide: true, cell: (row) => html`<a href=${link(null, "evaluations", { question: row.id, first, second }, name)} dir="auto">${row.question}</a>` },
    ...data.systems.map((system) => ({ key: system, label: system, number: true, cell: (row) => percent(row.scores[system]) })),
  ];
  return html`<section class="stack"><h2>Questions</h2>
    <div class="actions choices"><${Field} label="Compare the answers of"><${Choice} value=${first} values=${data.systems} onChange=${(value) => setPair([value, second])} /></${Field}>
      <${Field} label="and of"><${Choice} value=${second} values=${data.systems} onChange=${(value) => setPair([first, value])} /></${Field}></div>
    <${Table} caption=${`${count(data.total, "question")}, with ${data.metric ?? "no score"} in percent`} showCaption columns=${columns} rows=${data.questions} rowKey=${(row) => row.id} />
    ${data.questions.length < data.total ? html`<${Button} onClick=${() => setLimit(limit + 4 * QUESTIONS)}>Show more</${Button}>` : null}</section>`;
}

function TwoAnswers({ name, query, navigate }) {
  const { data, error } = useGet(`api/evaluations/${encodeURIComponent(name)}/compare`, { first: query.first, second: query.second, question: query.question });
  const back = link(null, "evaluations", {}, name);
  useKeys("Two answers", [["u", "back to the experiment", () => navigate(back)]]);
  if (!data) return html`<${Head} title="Two answers" />${error ? html`<${ErrorNotice} error=${error} />` : html`<${Loading} />`}`;
  const reference = data.answers.length ? data.answers.join(" / ") : data.correct;
  return html`
    <${Head} title=${data.question} actions=${html`<${Button} href=${back}>Back to the experiment</${Button}>`}>${reference ? html`Reference: <b dir="auto">${reference}</b>` : null}</${Head}>
    ${data.options.length ? html`<ol class="options">${data.options.map((option, place) => html`<li key=${place}><b>${"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[place]}</b> <span dir="auto">${option}</span></li>`)}</ol>` : null}
    <div class="twin">${data.systems.map((side, place) => html`<section key=${place} class="stack">
      <h2>${side.system}</h2>
      <${ErrorNotice} error=${side.error ? { message: side.error } : null} />
      <p class="answer-text" dir="auto">${side.choice ? html`<b>${side.choice}</b> ` : null}${side.answer || "–"}</p>
      <dl class="facts">${Object.entries(side.scores).map(([metric, value]) => html`<dt key=${metric}>${metric}</dt><dd class="number">${percent(value)}</dd>`)}</dl>
      ${side.quotes.map((quote, at) => html`<blockquote key=${at} class="cited" dir="auto">${quote}</blockquote>`)}
      <h3>Evidence shown to the model</h3>
      <ol class="pieces">${side.evidence.map((piece) => html`<li key=${piece.id}><${Fold} summary=${html`${piece.gold ? html`<${Tag} kind="good">gold</${Tag}> ` : null}${piece.shared ? html`<${Tag}>both</${Tag}> ` : null}<span dir="auto">${piece.text.slice(0, 100)}</span>`}><p dir="auto" class="piece">${piece.text}</p></${Fold}></li>`)}</ol>
      <p><${CostLine} cost=${side.cost} answer=${side} /></p>
    </section>`)}</div>`;
}

// ---------------------------------------------------------------- plots

/** Scores with their intervals, a row for each system. */
function Intervals({ title, rows, metric, all = rows.map((row) => row.system) }) {
  const known = rows.filter((row) => row[metric] !== null && row[metric] !== undefined);
  const at = (value) => `${(100 * value).toFixed(2)}%`;
  return html`<figure class="plot"><figcaption>${title}</figcaption><div class="tracks" role="img" aria-label=${known.map((row) => `${row.system} ${percent(row[metric])}`).join(", ")}>${known.map((row) => {
    const [low, high] = row.ci[metric] ?? [row[metric], row[metric]];
    return html`<span class="track-name">${row.system}</span><span class=${`track series-${all.indexOf(row.system) % 6}`}>
      <i class="range" style=${{ left: at(low), width: at(high - low) }}></i><i class="point" style=${{ left: at(row[metric]) }}></i></span>`;
  })}<span></span><span class="track-ends number"><span>0</span><span>50</span><span>100</span></span></div></figure>`;
}

function CostPlot({ rows, metric }) {
  const inDollars = rows.every((row) => row.per_question.dollars);
  const series = rows.filter((row) => row[metric] !== null).map((row) => ({ name: row.system, points: [[inDollars ? row.per_question.dollars : row.per_question.input_tokens + row.per_question.output_tokens, row[metric]]] }));
  return html`<${Plot} title=${`${metric} and the cost of a question`} label=${inDollars ? "dollars a question" : "tokens a question"} series=${series} format=${(value) => (inDollars ? `$${value.toPrecision(2)}` : formatCount(Math.round(value)))} />`;
}

function RiskPlot({ rows, metric }) {
  const series = rows.filter((row) => row.risks.length).map((row) => ({ name: row.system, points: row.risks.filter((risk) => risk.risk !== null).map((risk) => [risk.coverage, risk.risk]) }));
  return html`<${Plot} title=${`Risk (1 − ${metric}) where only surer answers count`} label="share of questions answered" series=${series} most=${1} format=${(value) => `${Math.round(100 * value)} %`} />`;
}

const [WIDE, HIGH, LEFT, BELOW] = [340, 220, 36, 40];

/**
 * Points, joined where a system has several, over an axis from 0; logarithmic where the costs differ by ten times or more. What is drawn first is
 * larger, so that it is seen behind what covers it.
 */
function Plot({ title, label, series, format, most }) {
  const values = series.flatMap(({ points }) => points.map(([x]) => x));
  if (!values.length) return null;
  const top = most ?? Math.max(...values, 1e-9);
  const least = Math.min(...values);
  const isLog = !most && least > 0 && top / least >= 10;
  const across = (x) => LEFT + (WIDE - LEFT - 12) * (isLog ? 0.04 + (0.96 * Math.log(x / least)) / Math.log(top / least) : x / top);
  const up = (y) => HIGH - BELOW - (HIGH - BELOW - 12) * y;
  const widen = (place) => Math.min(3, series.length - 1 - place);
  const ticks = isLog ? [least, Math.sqrt(least * top), top] : [0, top / 2, top];
  return html`<figure class="plot"><figcaption>${title}</figcaption>
    <svg viewBox=${`0 0 ${WIDE} ${HIGH}`} width=${WIDE} height=${HIGH} role="img" aria-label=${`${title}: ${series.map(({ name, points }) => `${name} ${points.map(([x, y]) => `${format(x)} ${percent(y)}`).join("; ")}`).join(". ")}`}>
      ${[0, 0.25, 0.5, 0.75, 1].map((y) => html`<line key=${y} class="grid" x1=${LEFT} x2=${WIDE - 12} y1=${up(y)} y2=${up(y)} /><text x=${LEFT - 8} y=${up(y) + 4} text-anchor="end">${100 * y}</text>`)}
      ${ticks.map((x, place) => html`<text key=${x} x=${across(x)} y=${HIGH - BELOW + 18} text-anchor=${place === 2 ? "end" : place ? "middle" : isLog ? "middle" : "start"}>${format(x)}</text>`)}
      <text x=${(LEFT + WIDE) / 2} y=${HIGH - 4} text-anchor="middle">${label}</text>
      ${series.map(({ name, points }, place) => html`<g key=${name} class=${`series-${place % 6}`}>
        ${points.length > 1 ? html`<polyline class="line" stroke-width=${1.5 + widen(place)} points=${points.map(([x, y]) => `${across(x)},${up(y)}`).join(" ")} />` : null}
        ${points.map(([x, y]) => html`<circle key=${`${x} ${y}`} class="dot" cx=${across(x)} cy=${up(y)} r=${4.5 + 2 * widen(place)}><title>${`${name}: ${format(x)}, ${percent(y)}`}</title></circle>`)}</g>`)}
    </svg>
    <p class="series-names">${series.map(({ name }, place) => html`<span key=${name} class=${`series-${place % 6}`}><i></i>${name}</span>`)}</p></figure>`;
}
