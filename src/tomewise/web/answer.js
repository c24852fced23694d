// An answer: its text, its quotations, what it lacks, what it cost, and how it is copied.
import { Button, Menu, Notice, Quote, Tag, count, formatCount, formatMoney, formatPlace, formatSeconds, html, link, nameDocument, shorten, useState } from "./parts.js";
import { Markdown } from "./markdown.js";
import { describeSources, isAll, readScope } from "./sources.js";

/** What marks an answer: words with their kinds, none for one that is fully supported. */
export function listMarks(answer) {
  return [
    !answer.resolved && !answer.forced && ["declined", "warn"],
    answer.forced && ["a guess: it was asked to answer in any case", "warn"],
    answer.resolved && answer.supported === "partly" && ["supported in part", "warn"],
    answer.resolved && answer.supported === "none" && ["not supported", "error"],
  ].filter(Boolean);
}

/** Where the quotations of a document are, for the document view to go from one to the next. */
function linkCitation(tome, answer, citation) {
  return link(tome, "doc", { id: citation.document, start: citation.start, end: citation.end, trace: answer.trace ?? answer.id });
}

/** An answer as `tome ask --json` or a stored trace has it: text, marks, what is missing, numbered quotations. */
export function AnswerView({ answer, tome }) {
  const { citations, nearest = [] } = answer;
  const marks = listMarks(answer);
  if (answer.quotations?.length) return html`<div class="answer"><${Nearest} answer=${answer} tome=${tome} /><${Lagging} lagging=${answer.lagging} tome=${tome} /></div>`;
  const isDeclined = !answer.resolved && !answer.forced;
  const references = citations.map((citation, place) => html` <a key=${place} class="reference" href=${linkCitation(tome, answer, citation)} aria-label=${`Quotation ${place + 1}`}>${place + 1}</a>`);
  return html`<div class="answer">
    ${marks.length ? html`<p class="marks">${marks.map(([words, kind]) => html`<${Tag} key=${words} kind=${kind}>${words}</${Tag}>`)}</p>` : null}
    ${isDeclined && !answer.text
      ? html`<p class="answer-text">The documents do not hold the answer.</p>`
      : html`<div class="answer-text prose" dir="auto">${answer.choice ? html`<b class="choice">${answer.choice}</b> ` : null}<${Markdown} text=${answer.text} tail=${references} /></div>`}
    <${Lagging} lagging=${answer.lagging} tome=${tome} />
    ${answer.kept === false ? html`<${Notice} kind="warn" title="Not kept.">The server could not write all of this answer down: its disk may be full.</${Notice}>` : null}
    ${answer.missing ? html`<p class="missing"><b>Missing:</b> <span dir="auto">${answer.missing}</span></p>` : null}
    ${citations.length ? html`<ol class="quotes">${citations.map((citation, place) => html`<li key=${place}>
      <${Quote} number=${place + 1} text=${citation.quote} href=${linkCitation(tome, answer, citation)} source=${describeSource(citation)} /></li>`)}</ol>` : null}
    ${nearest.length ? html`<h3>The nearest passages</h3><ol class="quotes near">${nearest.map((passage, place) => html`<li key=${place}>
      <${Quote} text=${shorten(passage.text.replaceAll(/\s+/g, " "), 320)} href=${link(tome, "doc", { id: passage.document, start: passage.start, end: passage.end })} source=${describeSource(passage)} /></li>`)}</ol>` : null}
    ${answer.dropped_quotes || answer.derived_quotes ? html`<p class="soft small">${[
      answer.dropped_quotes && `${count(answer.dropped_quotes, "quotation")} of the model stood nowhere in the documents and ${answer.dropped_quotes === 1 ? "was" : "were"} left out`,
      answer.derived_quotes && `${count(answer.derived_quotes, "quotation")} came from summaries, which are no source`,
    ].filter(Boolean).join("; ")}.</p>` : null}
  </div>`;
}

/** Without a model: sentences in place of an answer, each between those before and after it. */
function Nearest({ answer, tome }) {
  const shown = new Set(answer.quotations.map(({ citation }) => citation.quote));
  const around = (text) => (text && !shown.has(text) ? html`<span class="soft" dir="auto">${text} </span>` : null);
  return html`<p class="marks"><${Tag}>no model is set</${Tag}></p>
    <h3>${answer.resolved ? "The nearest passages: they may hold the answer" : `Nothing here seems to answer this${answer.missing ? ` (${answer.missing})` : ""}; the nearest passages`}</h3>
    <ol class="quotes answer-text">${answer.quotations.map(({ citation, before, after, option }, place) => html`<li key=${place}><figure class="quote">
      <a class="quote-number reference" href=${linkCitation(tome, answer, citation)} aria-label=${`Quotation ${place + 1}`}>${place + 1}</a>
      <div>${around(before)}<blockquote class="inline" dir="auto">${citation.quote}</blockquote> ${around(after)}</div>
      <figcaption>${option ? html`<b class="choice">${option}</b> ` : null}<a href=${linkCitation(tome, answer, citation)}>${describeSource(citation)}</a></figcaption></figure></li>`)}</ol>`;
}

/** What the memory that answered did not know yet, and the way to its build. */
function Lagging({ lagging, tome }) {
  if (!lagging) return null;
  const names = lagging.documents.slice(0, 3).map((id) => nameDocument(id)).join(", ");
  const words = [
    lagging.count ? `What was built does not know ${count(lagging.count, "document")} yet: ${names}${lagging.count > 3 ? ", …" : ""}.` : "",
    lagging.nearer ? "One of the passages nearest to the question is there." : "",
    lagging.removed ? "What was made from removed documents is gone and was not made again." : "",
  ].filter(Boolean).join(" ");
  const price = lagging.calls ? ` (about ${count(lagging.calls, "call")}${lagging.cost ? `, ${formatMoney(lagging.cost)}` : ""})` : "";
  return html`<${Notice} kind=${lagging.nearer ? "warn" : "info"} title="Answered from older memory." actions=${html`<${Button} small href=${link(tome, "build", { system: lagging.system })}>Bring it up to date${price}</${Button}>`}>${words}</${Notice}>`;
}

/** What a question was narrowed to. */
export function Within({ within }) {
  const sources = readScope(within);
  if (!within || isAll(sources)) return null;
  return html`<p class="soft understood">Looked only into: <span dir="auto">${describeSources(sources)}</span></p>`;
}

function describeSource({ document, title, place, position }) {
  return [nameDocument(document, title), formatPlace(place), position === undefined ? "" : `part ${position + 1}`].filter(Boolean).join(", ");
}

/** Calls, tokens, money and seconds in one line. `usage` is that of an answer, or what was spent so far. */
export function UsageLine({ usage }) {
  if (!usage) return null;
  const seconds = usage.model_seconds === undefined ? null : usage.model_seconds + usage.own_seconds;
  return html`<span class="usage number">${[
    ...(usage.calls ? [count(usage.calls, "call"), `${formatCount(usage.input_tokens)} tokens in, ${formatCount(usage.output_tokens)} out`, formatMoney(usage.cost)] : ["no new call"]),
    seconds === null ? null : formatSeconds(seconds),
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

/** An answer as it is pasted elsewhere: plain, as Markdown with links to this page, or its quotations alone with their places. */
function writeCopies(answer, tome, question) {
  const words = answer.quotations?.length ? "The nearest passages:" : answer.text || "The documents do not hold the answer."; // without a model the text is its quotations
  const address = (citation) => new URL(linkCitation(tome, answer, citation), location.href).href;
  const number = (write) => answer.citations.map((citation, place) => write(citation, place + 1));
  const plain = [words, ...number((citation, at) => `[${at}] “${citation.quote}” (${describeSource(citation)})`)].join("\n");
  const quoted = number((citation, at) => `${at}. ${citation.quote.replaceAll(/\s+/g, " ")} ([${describeSource(citation).replaceAll(/[[\]\\]/g, "\\$&")}](${address(citation)}))`);
  const markdown = [`**${question.replaceAll(/\s+/g, " ")}**`, words, quoted.join("\n")].filter(Boolean).join("\n\n");
  const citation = number((each) => `“${each.quote.replaceAll(/\s+/g, " ")}” ${describeSource(each)}.`).join("\n");
  return { plain, markdown, citation };
}

/** What can be done with an answer that has a trace. */
export function AnswerActions({ answer, tome, question, onGuess }) {
  const number = answer.trace ?? answer.id;
  const trace = link(tome, "history", {}, String(number));
  const [copied, setCopied] = useState("Copy");
  const copy = (kind) => navigator.clipboard.writeText(writeCopies(answer, tome, question)[kind]).then(() => setCopied("Copied"), () => setCopied("The browser did not copy it"));
  return html`<span class="actions">
    ${onGuess && !answer.resolved && !answer.forced ? html`<${Button} small kind="quiet" onClick=${onGuess}>Ask for a guess</${Button}>` : null}
    ${number ? html`<${Button} small kind="quiet" href=${link(tome, "memory", { trace: number })}>Picture</${Button}>
      ${location.hash === trace ? null : html`<${Button} small kind="quiet" href=${trace}>Trace ${number}</${Button}>`}` : null}
    ${location.hash.startsWith(link(tome, "compare")) ? null : html`<${Button} small kind="quiet" href=${link(tome, "compare", { question })}>Compare</${Button}>`}
    ${navigator.clipboard ? html`<${Menu} label=${copied} items=${[
      { label: "As text", hint: "the answer and its quotations", onClick: () => copy("plain") },
      { label: "As Markdown", hint: "with links to the quotations", onClick: () => copy("markdown") },
      answer.citations.length ? { label: "As citation", hint: "the quotations and where they stand", onClick: () => copy("citation") } : null,
    ]} />` : null}
  </span>`;
}
