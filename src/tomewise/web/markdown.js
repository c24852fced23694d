// Markdown as elements of the page, never as HTML: a text from anywhere can be shown. Tags stay text, pictures are not fetched, and links lead
// only where their address is shown. Each leaf knows where it stands in the text, so that a quotation is marked exactly.
import { Button, formatCount, html, useState } from "./parts.js";

const MOST = 100_000; // characters that are read as Markdown at once
const DEEPEST = 8; // quotations and lists within each other
const OPEN = 16; // emphasis and links that are open at a time
const CELLS = 64; // of a row; what follows stands in the last one
const HEAD = 300; // characters of a line that decide what it is
const ADDRESS = 2000; // characters of an address

// ---------------------------------------------------------------- blocks

/**
 * The blocks of a text: `{kind, start, end, ...}` in UTF-16 units. Kinds: `heading` (`level`), `paragraph`, `quote` and `list` (`blocks`, `items`),
 * `code` (`info`, `lines`), `table` (`head`, `rows`), `rule`.
 */
function parseBlocks(text) {
  const lines = [];
  for (let from = 0; from < text.length;) {
    const found = text.indexOf("\n", from);
    const to = found < 0 ? text.length : found;
    lines.push([from, text[to - 1] === "\r" && to > from ? to - 1 : to]);
    from = to + 1;
  }
  return readBlocks(text, lines, 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)/;
const QUOTE = /^ {0,3}> ?/;

function isRule(head) {
  const signs = head.replaceAll(/[ \t]/g, "");
  return signs.length > 2 && signs.length < 100 && ["-", "*", "_"].includes(signs[0]) && signs === signs[0].repeat(signs.length);
}

function isRow(head) {
  return /^ {0,3}\|.*\|/.test(head);
}

function isDivider(head) {
  return head.includes("-") && head.includes("|") && /^[|:\- \t]+$/.test(head);
}

function readBlocks(text, lines, depth) {
  const read = ([from, to]) => text.slice(from, Math.min(to, from + HEAD));
  const isBlank = ([from, to]) => to - from < HEAD && !text.slice(from, to).trim();
  const blocks = [];
  let at = 0;
  const push = (block, from, to) => blocks.push({ ...block, start: lines[from][0], end: lines[to - 1][1] });
  while (at < lines.length) {
    const first = at;
    const head = read(lines[at]);
    if (isBlank(lines[at])) { at += 1; continue; }
    const fence = FENCE.exec(head)?.[1];
    if (fence) {
      const isEnd = (line) => line.trim().startsWith(fence) && line.trim() === fence[0].repeat(line.trim().length);
      for (at += 1; at < lines.length && !isEnd(read(lines[at]));) at += 1;
      const body = lines.slice(first + 1, at);
      at = Math.min(at + 1, lines.length);
      const info = [lines[first][0] + head.indexOf(fence) + fence.length, lines[first][1]];
      push({ kind: "code", info, lines: body }, first, at);
      continue;
    }
    const heading = HEADING.exec(head);
    if (heading) {
      at += 1;
      push({ kind: "heading", level: heading[1].length, spans: [[lines[first][0] + heading[0].length, trimEnd(text, lines[first])]] }, first, at);
      continue;
    }
    if (isRule(head)) { at += 1; push({ kind: "rule" }, first, at); continue; }
    if (depth < DEEPEST && QUOTE.test(head)) {
      const inner = [];
      for (; at < lines.length && QUOTE.test(read(lines[at])); at += 1) inner.push([lines[at][0] + QUOTE.exec(read(lines[at]))[0].length, lines[at][1]]);
      push({ kind: "quote", blocks: readBlocks(text, inner, depth + 1) }, first, at);
      continue;
    }
    if (depth < DEEPEST && ITEM.test(head)) { at = readList(text, lines, at, depth, { read, isBlank, push }); continue; }
    if (isRow(head) || (at + 1 < lines.length && head.includes("|") && isDivider(read(lines[at + 1])))) {
      for (; at < lines.length && read(lines[at]).includes("|") && !isBlank(lines[at]);) at += 1;
      const rows = lines.slice(first, at);
      const hasHead = rows.length > 1 && isDivider(read(rows[1]));
      const cells = (line) => cutCells(text, line);
      push({ kind: "table", head: hasHead ? cells(rows[0]) : null, rows: rows.slice(hasHead ? 2 : 0).map(cells) }, first, at);
      continue;
    }
    const spans = [];
    let level = 0;
    for (; at < lines.length && !isBlank(lines[at]); at += 1) {
      const next = read(lines[at]);
      if (at > first) {
        const under = /^ {0,3}(=+|-+)[ \t]*$/.exec(next)?.[1];
        if (under) { level = under[0] === "=" ? 1 : 2; at += 1; break; }
        if (FENCE.test(next) || HEADING.test(next) || isRule(next) || (depth < DEEPEST && (QUOTE.test(next) || /^ {0,3}([-*+]|1[.)]) +\S/.test(next))) || isRow(next)) break;
      }
      spans.push(lines[at]);
    }
    push(level ? { kind: "heading", level, spans } : { kind: "paragraph", spans }, first, at);
  }
  return blocks;
}

/** Reads a list from line `at` on, and returns the line after it. */
function readList(text, lines, at, depth, { read, isBlank, push }) {
  const first = at;
  const isNumber = /\d/.test(ITEM.exec(read(lines[at]))[2]);
  const begin = Number.parseInt(ITEM.exec(read(lines[at]))[2], 10);
  const items = [];
  let end = at;
  while (at < lines.length) {
    const mark = ITEM.exec(read(lines[at]));
    if (!mark || /\d/.test(mark[2]) !== isNumber || isRule(read(lines[at]))) break;
    const width = mark[0].length;
    const inner = [[lines[at][0] + Math.min(width, lines[at][1] - lines[at][0]), lines[at][1]]];
    at += 1;
    end = at;
    for (; at < lines.length; at += 1) {
      const [from, to] = lines[at];
      if (isBlank(lines[at])) { inner.push([to, to]); continue; }
      const indent = /^[ \t]*/.exec(read(lines[at]))[0];
      const isWithin = indent.includes("\t") || indent.length >= Math.min(width, 4);
      const goesOn = !isBlank(lines[at - 1]) && !ITEM.test(read(lines[at])) && !QUOTE.test(read(lines[at])) && !FENCE.test(read(lines[at])) && !HEADING.test(read(lines[at]));
      if (!isWithin && !goesOn) break;
      inner.push([from + (isWithin ? Math.min(indent.includes("\t") ? 1 : width, indent.length) : indent.length), to]);
      end = at + 1;
    }
    items.push(readBlocks(text, inner, depth + 1));
  }
  push({ kind: "list", items, begin: isNumber ? begin : null }, first, end);
  return at;
}

/** Where the words of a heading end: before its closing signs. */
function trimEnd(text, [from, to]) {
  let end = to;
  while (end > from && " \t".includes(text[end - 1])) end -= 1;
  let signs = end;
  while (signs > from && text[signs - 1] === "#") signs -= 1;
  return signs > from && " \t".includes(text[signs - 1]) ? signs - 1 : end;
}

/** The cells of a row, as spans. */
function cutCells(text, [from, to]) {
  const cells = [];
  let start = from;
  for (let at = from; at <= to; at += 1) {
    if (at < to && (text[at] !== "|" || text[at - 1] === "\\" || cells.length === CELLS)) continue;
    cells.push([start, at]);
    start = at + 1;
  }
  const trimmed = cells.map(([begin, end]) => {
    while (begin < end && " \t".includes(text[begin])) begin += 1;
    while (end > begin && " \t".includes(text[end - 1])) end -= 1;
    return [begin, end];
  });
  const isEmpty = (cell) => cell && cell[0] >= cell[1];
  return trimmed.slice(isEmpty(trimmed[0]) ? 1 : 0, trimmed.length > 1 && isEmpty(trimmed.at(-1)) ? -1 : undefined);
}

// ---------------------------------------------------------------- words in a block

/**
 * The pieces of spans of a text: `{kind: "text", from, to}`, and `strong`, `em`, `del`, `code`, `link` (`href`) or `picture` with `children`.
 * Takes time in proportion to the text, whatever it holds.
 */
function parseInline(text, spans) {
  const out = [{ kind: "root", children: [] }];
  const missing = new Set(); // lengths of runs of ` that nothing closes
  const top = () => out.at(-1);
  const put = (from, to) => {
    if (to <= from) return;
    const last = top().children.at(-1);
    if (last?.kind === "text" && last.to === from) last.to = to;
    else top().children.push({ kind: "text", from, to });
  };
  /** Takes what is open from `place` on out of the way: its signs are text after all. */
  const flatten = (place) => {
    while (out.length > place) {
      const { sign, children } = out.pop();
      top().children.push({ kind: "text", from: sign[0], to: sign[1] }, ...children);
    }
  };
  const close = (place, node) => {
    flatten(place + 1);
    const { children } = out.pop();
    top().children.push({ ...node, children });
  };
  for (const [from, to] of spans) {
    if (from !== spans[0][0]) top().children.push({ kind: "text", from: from - 1, to: from }); // the end of the line before
    for (let at = from; at < to;) {
      const sign = text[at];
      if (sign === "\\" && at + 1 < to && /[!-/:-@[-`{-~]/.test(text[at + 1])) { put(at + 1, at + 2); at += 2; continue; }
      if (sign === "`") {
        let end = at;
        while (end < to && text[end] === "`") end += 1;
        const length = end - at;
        const until = missing.has(length) ? -1 : findRun(text, end, to, length);
        if (until < 0) { missing.add(length); put(at, end); at = end; continue; }
        top().children.push({ kind: "code", children: [{ kind: "text", from: end, to: until }] });
        at = until + length;
        continue;
      }
      if (sign === "[" || (sign === "!" && text[at + 1] === "[" && at + 1 < to)) {
        const end = at + (sign === "!" ? 2 : 1);
        if (out.length > OPEN) put(at, end);
        else out.push({ kind: sign === "!" ? "picture" : "link", sign: [at, end], children: [] });
        at = end;
        continue;
      }
      if (sign === "]") {
        const place = out.findLastIndex(({ kind }) => kind === "link" || kind === "picture");
        const target = place > 0 && text[at + 1] === "(" ? /^\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)?)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(text.slice(at + 1, Math.min(to, at + ADDRESS))) : null;
        if (target) { close(place, { kind: out[place].kind, href: target[1] }); at += 1 + target[0].length; continue; }
        if (place > 0) { flatten(place); }
        put(at, at + 1);
        at += 1;
        continue;
      }
      if (sign === "*" || sign === "_" || (sign === "~" && text[at + 1] === "~")) {
        const length = text[at + 1] === sign && at + 1 < to ? 2 : 1;
        const [before, after] = [text[at - 1] ?? " ", at + length < to ? text[at + length] : " "];
        const isWord = (letter) => /[\p{L}\p{N}]/u.test(letter);
        const mayClose = !/\s/.test(before) && at > from && (sign !== "_" || !isWord(after));
        const mayOpen = !/\s/.test(after) && (sign !== "_" || !isWord(before)) && out.length <= OPEN;
        const place = mayClose ? out.findLastIndex((each) => each.mark === sign && each.length === length) : -1;
        const [kind] = sign === "~" ? ["del"] : length === 2 ? ["strong"] : ["em"];
        if (place > 0) close(place, { kind });
        else if (mayOpen) out.push({ kind, mark: sign, length, sign: [at, at + length], children: [] });
        else put(at, at + length);
        at += length;
        continue;
      }
      if (sign === "h" && !out.some(({ kind }) => kind === "link")) {
        const address = /^https?:\/\/[^\s<>"'`|*]+[^\s<>"'`|*.,;:!?)\]]/.exec(text.slice(at, Math.min(to, at + ADDRESS)))?.[0];
        if (address && !/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) {
          top().children.push({ kind: "link", href: address, children: [{ kind: "text", from: at, to: at + address.length }] });
          at += address.length;
          continue;
        }
      }
      let end = at + 1;
      while (end < to && !"\\`[!]*_~h".includes(text[end])) end += 1;
      put(at, end);
      at = end;
    }
  }
  flatten(1);
  return out[0].children;
}

/** Where a run of exactly `length` backticks begins, or -1. */
function findRun(text, from, to, length) {
  for (let at = text.indexOf("`", from); at >= 0 && at < to; at = text.indexOf("`", at)) {
    let end = at;
    while (end < to && text[end] === "`") end += 1;
    if (end - at === length) return at;
    at = end;
  }
  return -1;
}

/** The address that a link may lead to, or null: one of the web or of mail. Others, such as those that run a script, are text. */
export function readAddress(href) {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

// ---------------------------------------------------------------- elements

/**
 * A text as elements. `leaf(from, to)` gives what is shown of a span of it, such as the words with marks; `frame(block, element)` surrounds each block;
 * its headings stand below one of level `top`. Of what is longer than `most`, the rest is shown as plain text, part after part.
 */
export function Markdown({ text, leaf = (from, to) => text.slice(from, to), frame = (block, element) => element, top = 2, most = MOST }) {
  const end = text.length <= most ? text.length : Math.max(text.lastIndexOf("\n", most), 0) || most;
  const shown = end < text.length ? text.slice(0, end) : text;
  const blocks = parseBlocks(shown);
  const rest = end < text.length ? html`<${Rest} key="rest" text=${text} start=${end} />` : null;
  const drawer = new Drawer(shown, leaf, top);
  return html`${blocks.map((block) => frame(block, drawer.draw(block)))}${rest}`;
}

/** Where the words stand that are shown of a text: `[from, to]` of each leaf that holds some, in order. */
export function listLeaves(text) {
  const leaves = [];
  const drawer = new Drawer(text, (from, to) => { if (to > from) leaves.push([from, to]); }, 0);
  for (const block of parseBlocks(text.slice(0, MOST))) drawer.draw(block);
  return leaves;
}

/** What is too long to be read as Markdown, part after part. */
function Rest({ text, start }) {
  const [end, setEnd] = useState(start);
  return html`<div class="plain">${text.slice(start, end)}</div>
    ${end < text.length ? html`<${Button} small onClick=${() => setEnd(end + MOST)}>Show more (${formatCount(text.length - end)} characters left)</${Button}>` : null}`;
}

class Drawer {
  constructor(text, leaf, top) {
    Object.assign(this, { text, leaf, top, level: top }); // `level` is that of the heading before
  }

  draw(block) {
    const { kind, start } = block;
    const words = (spans) => this.drawInline(parseInline(this.text, spans));
    const all = (blocks) => blocks.map((each) => this.draw(each));
    if (kind === "heading") {
      this.level = Math.min(6, this.top + block.level, this.level + 1); // a reader by ear is told of no level that is left out
      return html`<p key=${start} class=${`heading level-${block.level}`} role="heading" aria-level=${this.level}>${words(block.spans)}</p>`;
    }
    if (kind === "rule") return html`<hr key=${start} />`;
    if (kind === "quote") return html`<blockquote key=${start}>${all(block.blocks)}</blockquote>`;
    if (kind === "code") return html`<pre key=${start}>${this.text.slice(...block.info).trim() ? html`<small class="soft">${this.leaf(...block.info)}${"\n"}</small>` : null}<code>${block.lines.map(([from, to]) => html`${this.leaf(from, to)}${"\n"}`)}</code></pre>`;
    if (kind === "list") {
      const items = block.items.map((item, place) => html`<li key=${place}>${item.length === 1 && item[0].kind === "paragraph" ? words(item[0].spans) : all(item)}</li>`);
      return block.begin === null ? html`<ul key=${start}>${items}</ul>` : html`<ol key=${start} start=${block.begin}>${items}</ol>`;
    }
    if (kind === "table") {
      return html`<div class="scroll" key=${start}><table>${block.head ? html`<thead><tr>${block.head.map((cell, place) => html`<th scope="col" key=${place}>${words([cell])}</th>`)}</tr></thead>` : null}
        <tbody>${block.rows.map((row, place) => html`<tr key=${place}>${row.map((cell, at) => html`<td key=${at}>${words([cell])}</td>`)}</tr>`)}</tbody></table></div>`;
    }
    return html`<p key=${start}>${words(block.spans)}</p>`;
  }

  drawInline(pieces) {
    return pieces.map((piece) => {
      if (piece.kind === "text") return this.leaf(piece.from, piece.to);
      const inner = this.drawInline(piece.children);
      if (piece.kind === "strong") return html`<strong>${inner}</strong>`;
      if (piece.kind === "em") return html`<em>${inner}</em>`;
      if (piece.kind === "del") return html`<del>${inner}</del>`;
      if (piece.kind === "code") return html`<code>${inner}</code>`;
      if (piece.kind === "picture") return html`<span class="picture" title="Pictures of texts are not fetched">[picture: ${inner}]</span>`;
      return this.drawLink(piece, inner);
    });
  }

  drawLink({ href, children }, inner) {
    const url = readAddress(href);
    if (!url) return html`<span title=${href}>${inner}</span>`;
    const [only] = children;
    const isPlain = children.length === 1 && only.kind === "text" && this.text.slice(only.from, only.to) === href;
    return html`<a href=${url.href} target="_blank" rel="noopener noreferrer nofollow" title=${url.href}>${inner}</a>${isPlain ? null : html`<span class="host"> (${url.host || url.pathname})</span>`}`;
  }
}
