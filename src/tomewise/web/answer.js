// An answer: its text, its quotations, what it lacks, what it cost, and how it is copied.
import { Button, Menu, Notice, Quote, Tag, count, formatCount, formatMoney, formatPlace, formatSeconds, html, link, nameDocument, shorten, useGet, useId, useMemo, useState } from "./parts.js";
import { send, tomePath } from "./api.js";
import { Markdown, listLeaves } from "./markdown.js";
import { describeSources, isAll, readScope } from "./sources.js";

const AROUND = 160; // characters on either side of a quotation in its preview
const DOUBTS = { none: "unsupported", contradicted: "contradicted" };

/** In a word, why an answer does not count as proved; undefined for one that is. */
export function nameDoubt({ resolved, support }) {
  return resolved ? DOUBTS[support] : "declined";
}

/** What a reader must know of an answer, as the server words it. */
function Remarks({ answer }) {
  return answer.remarks.map((remark) => html`<p class="remark" key=${remark}>${remark}</p>`);
}

/** The quotes of an answer in the order of their numbers: those of its statements, each once. `choice` is the letter of the option that rests on one. */
export function listQuotes({ statements }) {
  const quotes = new Map();
  for (const { quotes: found, choice } of statements) {
    for (const quote of found) if (!quotes.has(JSON.stringify(quote))) quotes.set(JSON.stringify(quote), { ...quote, choice });
  }
  return [...quotes.values()];
}

/** Where a quote stands, with the answer, for the document view to go from one to the next. */
function linkQuote(tome, answer, { document, start, end }) {
  return link(tome, "doc", { id: document, start, end, trace: answer.trace });
}

/** The marks in the text of an answer: `{at, numbers, doubt}`, each behind the last words of its statement that are shown, in order. */
function listTextMarks(answer, quotes) {
  const { text, statements } = answer;
  const keys = quotes.map(({ choice, ...quote }) => JSON.stringify(quote));
  const leaves = listLeaves(text);
  let passed = 0;
  return statements.map(({ text: words, start, support, quotes: own }) => {
    const from = start >= passed && text.startsWith(words, start) ? start : text.indexOf(words, passed); // the server counts characters otherwise, where some take two units
    passed = from < 0 ? passed : from + words.length;
    const end = from < 0 ? text.length : passed;
    const leaf = leaves.findLast(([begin]) => begin < end);
    return { at: leaf ? Math.min(end, leaf[1]) : 0, numbers: [...new Set(own.map((quote) => keys.indexOf(JSON.stringify(quote)) + 1))], doubt: DOUBTS[support] };
  }).filter(({ numbers, doubt }) => numbers.length || doubt);
}

/** The text of an answer with its marks: each a link to its quotation, or a word where nothing supports the statement. */
function MarkedText({ answer, quotes, tome }) {
  const marks = useMemo(() => listTextMarks(answer, quotes), [answer]);
  const draw = ({ numbers, doubt }, key) => {
    const references = numbers.map((number) => html` <${Reference} key=${number} number=${number} quote=${quotes[number - 1]} answer=${answer} tome=${tome} />`);
    if (!doubt) return references;
    return html`${doubt === DOUBTS.none && references} <span key=${key} class="tag warn">${doubt}${doubt === DOUBTS.none ? "" : html` by${references}`}</span>`;
  };
  const leaf = (from, to) => {
    const here = marks.filter(({ at }) => at > from && at <= to);
    const edges = [from, ...here.map(({ at }) => at), to];
    return edges.slice(1).map((edge, place) => html`${answer.text.slice(edges[place], edge)}${here[place] ? draw(here[place], place) : null}`);
  };
  return html`<${Markdown} text=${answer.text} leaf=${leaf} />${marks.filter(({ at }) => !at).map(draw)}`;
}

/** The number of a quotation, a link. While it is hovered or has the focus, it shows the sentence in its place, with the text around it. */
function Reference({ number, quote, answer, tome }) {
  const id = useId();
  const [spot, setSpot] = useState(null);
  const start = Math.max(0, quote.start - AROUND);
  const { data } = useGet(spot ? tomePath(tome, "text") : null, { document: quote.document, start, end: quote.end + AROUND });
  const letters = [...(data?.text ?? "")]; // the server counts characters
  const [from, to] = [quote.start - start, quote.end - start];
  const isHere = letters.slice(from, to).join("") === quote.text; // the document may have changed
  const show = ({ currentTarget }) => {
    const { left, top, bottom } = currentTarget.getBoundingClientRect();
    setSpot({ left: `${Math.max(8, Math.min(left, innerWidth - 392))}px`, ...(bottom > innerHeight / 2 ? { bottom: `${innerHeight - top}px` } : { top: `${bottom}px` }) });
  };
  const hide = () => setSpot(null);
  return html`<span class="mark" onMouseEnter=${show} onMouseLeave=${hide} onFocusIn=${show} onFocusOut=${hide} onKeyDown=${(event) => event.key === "Escape" && hide()}>
    <a class="reference" href=${linkQuote(tome, answer, quote)} aria-label=${`Quotation ${number}`} aria-describedby=${spot ? id : undefined}>${number}</a>
    ${spot ? html`<span class="preview" id=${id} role="tooltip" dir="auto" style=${spot}>
      ${isHere && start ? "…" : ""}${isHere ? letters.slice(0, from).join("") : ""}<mark>${quote.text}</mark>${isHere ? `${letters.slice(to).join("")}…` : ""}<small class="soft">${describeSource(quote)}</small></span>` : null}</span>`;
}

/** An answer as `tome ask --json` or a stored trace has it: text, marks, what is missing, numbered quotations. */
export function AnswerView({ answer, tome }) {
  const quotes = listQuotes(answer);
  if (answer.only_quotes) return html`<div class="answer"><${Nearest} answer=${answer} quotes=${quotes} tome=${tome} /><${Unread} answer=${answer} tome=${tome} /></div>`;
  const isDeclined = !answer.resolved && !answer.forced;
  return html`<div class="answer">
    ${isDeclined && !answer.text
      ? html`<p class="answer-text">The documents do not hold the answer.</p>`
      : html`<div class="answer-text prose" dir="auto">${answer.choice ? html`<b class="choice">${answer.choice}</b> ` : null}<${MarkedText} answer=${answer} quotes=${quotes} tome=${tome} /></div>`}
    <${Remarks} answer=${answer} /><${Unread} answer=${answer} tome=${tome} />
    ${answer.kept === false ? html`<${Notice} kind="warn" title="Not kept.">The server could not write all of this answer down: its disk may be full.</${Notice}>` : null}
    ${answer.missing ? html`<p class="missing"><b>Missing:</b> <span dir="auto">${answer.missing}</span></p>` : null}
    ${quotes.length ? html`<ol class="quotes">${quotes.map((quote, place) => html`<li key=${place}>
      <${Quote} number=${place + 1} text=${quote.text} href=${linkQuote(tome, answer, quote)} source=${describeSource(quote)} /></li>`)}</ol>` : null}
    ${answer.nearest.length ? html`<h3>The nearest passages</h3><${Passages} passages=${answer.nearest} tome=${tome} />` : null}
  </div>`;
}

/** Without a model: sentences in place of an answer, each between those before and after it. */
function Nearest({ answer, quotes, tome }) {
  const shown = new Set(quotes.map(({ text }) => text));
  const around = (text) => (text && !shown.has(text) ? html`<span class="soft" dir="auto">${text} </span>` : null);
  return html`<${Remarks} answer=${answer} /><h3>The nearest passages</h3>
    <ol class="quotes answer-text">${quotes.map((quote, place) => html`<li key=${place}><figure class="quote">
      <a class="quote-number reference" href=${linkQuote(tome, answer, quote)} aria-label=${`Quotation ${place + 1}`}>${place + 1}</a>
      <div>${around(quote.before)}<blockquote class="inline" dir="auto">${quote.text}</blockquote> ${around(quote.after)}</div>
      <figcaption>${quote.choice ? html`<b class="choice">${quote.choice}</b> ` : null}<a href=${linkQuote(tome, answer, quote)}>${describeSource(quote)}</a></figcaption></figure></li>`)}</ol>`;
}

/** Passages in a list: how each begins, and the way to it in its document. */
export function Passages({ passages, tome }) {
  return html`<ol class="quotes near">${passages.map((passage) => html`<li key=${passage.id}>
    <${Quote} text=${shorten(passage.text.replaceAll(/\s+/g, " "), 320)} href=${link(tome, "doc", { passage: passage.id })} source=${describeSource(passage)} /></li>`)}</ol>`;
}

/** What of the scope is not in the answer, and the way to a build where memory lags. */
function Unread({ answer: { coverage, lagging }, tome }) {
  if (!lagging) return coverage?.remark ? html`<p class="soft small">${coverage.remark}</p>` : null;
  const { calls, dollars } = lagging.cost;
  const price = calls ? ` (about ${count(calls, "call")}${dollars ? `, ${formatMoney(dollars)}` : ""})` : "";
  return html`<${Notice} kind=${lagging.nearer ? "warn" : "info"} title="Answered from older memory." actions=${html`<${Button} small href=${link(tome, "build", { system: lagging.system })}>Bring it up to date${price}</${Button}>`}>${coverage.remark}</${Notice}>`;
}

/** What a question was narrowed to. */
export function Within({ within }) {
  const sources = readScope(within);
  if (!within || isAll(sources)) return null;
  return html`<p class="soft understood">Looked only into: <span dir="auto">${describeSources(sources)}</span></p>`;
}

function describeSource({ document, title, place, position }) {
  return [nameDocument(document, title), formatPlace(place), `part ${position + 1}`].filter(Boolean).join(", ");
}

/** Calls, tokens, money and seconds in one line; of an answer also how much was read for it, and how far its quotes prove it. */
export function CostLine({ cost, answer }) {
  const { calls, dollars, input_tokens: input, output_tokens: output, model_seconds: waited, own_seconds: worked } = cost;
  const { coverage, support, resolved, only_quotes: isQuoted } = answer ?? {};
  return html`<span class="cost number">${[
    ...(calls ? [count(calls, "call"), `${formatCount(input)} tokens in, ${formatCount(output)} out`, formatMoney(dollars)] : ["no new call"]),
    waited + worked ? formatSeconds(waited + worked) : null, // the seconds are known at the end
    coverage?.passages ? `read ${formatCount(coverage.read)} of ${count(coverage.passages, "passage")}` : null,
    resolved && !isQuoted ? nameDoubt(answer) ?? support : null,
  ].filter(Boolean).join(" · ")}</span>`;
}

/** What the model has written so far. Its quotations are checked when it is complete. */
export function Draft({ text, live }) {
  return html`<div class="draft" aria-live="off"><p class="marks"><${Tag} kind="warn">${live ? "not verified yet" : "not verified"}</${Tag}></p><div class="answer-text prose" dir="auto"><${Markdown} text=${text} /></div></div>`;
}

/** The question behind an answer as it was understood, where a session made it stand alone. */
export function Understood({ answer, asked }) {
  const question = answer?.session?.question;
  if (!question || question === asked) return null;
  return html`<p class="soft understood">Understood as: <span dir="auto">${question}</span></p>`;
}

// ---------------------------------------------------------------- what is done with an answer

/** An answer as it is pasted elsewhere: as the server writes it, as text or as Markdown with footnotes, or its quotations alone with their places. */
async function writeCopy(kind, answer, tome, question) {
  if (kind === "citation") return listQuotes(answer).map((quote) => `“${quote.text.replaceAll(/\s+/g, " ")}” ${describeSource(quote)}.`).join("\n");
  const copies = await send("POST", tomePath(tome, "copies"), answer);
  return kind === "text" ? copies.text : `**${question.replaceAll(/\s+/g, " ")}**\n\n${copies.markdown}`;
}

/** What can be done with an answer that has a trace. */
export function AnswerActions({ answer, tome, question, onGuess }) {
  const number = answer.trace;
  const trace = link(tome, "history", {}, String(number));
  const [copied, setCopied] = useState("Copy");
  const copy = (kind) => navigator.clipboard.write([new ClipboardItem({ "text/plain": writeCopy(kind, answer, tome, question) })]).then(() => setCopied("Copied"), () => setCopied("The browser did not copy it"));
  return html`<span class="actions">
    ${onGuess && !answer.resolved && !answer.forced ? html`<${Button} small kind="quiet" onClick=${onGuess}>Ask for a guess</${Button}>` : null}
    ${number ? html`<${Button} small kind="quiet" href=${link(tome, "memory", { trace: number })}>Picture</${Button}>
      ${location.hash === trace ? null : html`<${Button} small kind="quiet" href=${trace}>Trace ${number}</${Button}>`}` : null}
    ${location.hash.startsWith(link(tome, "compare")) ? null : html`<${Button} small kind="quiet" href=${link(tome, "compare", { question })}>Compare</${Button}>`}
    ${navigator.clipboard ? html`<${Menu} label=${copied} items=${[
      { label: "As text", hint: "the answer and its quotations", onClick: () => copy("text") },
      { label: "As Markdown", hint: "with footnotes that lead to the quotations", onClick: () => copy("markdown") },
      listQuotes(answer).length ? { label: "As citation", hint: "the quotations and where they stand", onClick: () => copy("citation") } : null,
    ]} />` : null}
  </span>`;
}
