// Details of one node, and the list that says what the drawing says. All texts are set as texts.

const USES = { cited: "cited by the answer", shown: "seen by the answer" };

/** An element with a class, a text and children. */
export function make(tag, name = "", text = null, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== null) element.textContent = text;
  element.append(...children);
  return element;
}

/** A button that does `act`. */
export function makeButton(name, text, act, label = "") {
  const button = make("button", name, text);
  button.type = "button";
  if (label) button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  return button;
}

/** A link; its address is made by the caller, never read from a text. */
function makeLink(name, text, address) {
  const link = make("a", name, text);
  link.href = address;
  return link;
}

/** Fill the panel with what is known of a node. `go` opens another node. `addresses` gives links: `passage(passage)`
 * where a text stands, `around(node)` a drawing of what is near a node, `page(node)` all that is known of it; null where
 * there is none. */
export function showDetails(panel, picture, index, id, go, close, addresses = {}) {
  const node = index.nodes.get(id);
  const group = picture.groups.find((each) => each.id === node.group);
  const texts = { known: new Map(picture.passages.map((passage) => [passage.id, passage])), find: addresses.passage };
  const head = make("header", "tp-details-head", null,
    make("p", "tp-tag", node.use ? `${group.label} · ${USES[node.use]}` : group.label),
    makeButton("tp-close", "×", close, "Close the details"));
  if (node.use) head.dataset.use = node.use;
  const parts = [head, make("h2", "", node.mark && node.group === "point" ? node.mark : node.label)];
  parts[1].tabIndex = -1;
  if (node.text && node.text !== node.label) parts.push(make("p", "tp-text", node.text));
  else if (parts[1].textContent !== node.label) parts.push(make("p", "tp-text", node.label));
  parts.push(...listFacts(node));
  const around = addresses.around?.(node);
  if (around) parts.push(makeLink("tp-around", "Draw what is around it", around));
  const page = addresses.page?.(node);
  if (page) parts.push(makeLink("tp-around", "All facts and passages", page));
  if (node.passages.length) parts.push(...listPassages(node.passages, texts, true));
  if (node.notes.length) parts.push(make("h3", "", node.group === "point" ? "History" : "Notes"), listNotes(node.notes, texts));
  parts.push(...listNeighbours(picture, index, id, go));
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
  parts[1].focus({ preventScroll: true });
}

function listFacts(node) {
  const facts = Object.entries(node.facts).filter(([, value]) => value !== "");
  if (!facts.length) return [];
  const list = make("dl", "tp-facts");
  for (const [name, value] of facts) list.append(make("dt", "", name), make("dd", "", writeValue(value)));
  return [list];
}

function writeValue(value) {
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value);
}

function listNotes(notes, texts) {
  const list = make("ol", "tp-notes");
  for (const note of notes) {
    const item = make("li", "", null, make("h4", "", note.title), make("p", "tp-text", note.text));
    item.append(...listPassages(note.passages, texts, false));
    list.append(item);
  }
  return list;
}

/** The texts behind something: one is open at once, several wait behind their first words. */
function listPassages(ids, texts, open) {
  if (!ids.length) return [];
  const known = ids.map((id) => texts.known.get(id) ?? { id, text: "", title: "", place: "" });
  if (open && known.length === 1) return [makePassage(known[0], texts.find)];
  const box = make("details", "tp-passages");
  box.append(make("summary", "", `Rests on ${known.length} ${known.length === 1 ? "text" : "texts"}`), ...known.map((passage) => makePassage(passage, texts.find)));
  return [box];
}

function makePassage(passage, find) {
  const source = [passage.title || passage.document, passage.place].filter(Boolean).join(" · ");
  const address = find?.(passage);
  const quote = make("figure", "tp-passage", null, make("blockquote", "", passage.text || "(its text is not in this file)"));
  quote.append(make("figcaption", "", null, address ? makeLink("", source || passage.id, address) : source || passage.id));
  return quote;
}

function listNeighbours(picture, index, id, go) {
  const near = [...new Set(index.neighbours.get(id))];
  if (!near.length) return [];
  const sections = [];
  const words = new Map(picture.links.filter((link) => link.label).map((link) => [`${link.source}\n${link.target}`, link.label]));
  for (const group of picture.groups) {
    const members = near.filter((other) => index.nodes.get(other).group === group.id);
    if (!members.length) continue;
    const list = make("ul", "tp-near");
    for (const other of members) {
      const node = index.nodes.get(other);
      const word = words.get(`${id}\n${other}`) ?? words.get(`${other}\n${id}`);
      const button = makeButton("", node.label, () => go(other));
      if (node.mark) button.prepend(make("b", "", `${node.mark} `));
      if (word) button.append(make("small", "", ` ${word}`));
      if (node.use) button.dataset.use = node.use;
      list.append(make("li", "", null, button));
    }
    sections.push(make("h3", "", `${group.label} (${members.length})`), list);
  }
  return sections;
}

/** The list: a table for each group; of a tree one table, in its order, each row moved in by its depth. */
export function makeList(picture, index, visible, open) {
  const box = make("div", "tp-list");
  if (picture.kind === "tree") {
    const rows = [];
    const visit = (id, depth) => {
      if (visible(index.nodes.get(id))) rows.push([index.nodes.get(id), depth]);
      index.children.get(id).forEach((child) => visit(child, depth + 1));
    };
    index.roots.forEach((id) => visit(id, 0));
    box.append(makeTable(picture.title, rows, open));
    return box;
  }
  for (const group of picture.groups) {
    const rows = picture.nodes.filter((node) => node.group === group.id && visible(node)).map((node) => [node, 0]);
    if (rows.length) box.append(makeTable(`${group.label} (${rows.length})`, rows, open));
  }
  return box;
}

function makeTable(title, rows, open) {
  const names = [...new Set(rows.flatMap(([node]) => Object.keys(node.facts)))];
  const table = make("table", "", null, make("caption", "", title));
  const head = make("tr");
  for (const name of ["what", ...names, "answer"]) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  const body = make("tbody");
  for (const [node, depth] of rows) {
    const button = makeButton("tp-row", node.label, () => open(node.id));
    if (node.mark) button.prepend(make("b", "", `${node.mark} `));
    button.style.setProperty("--depth", depth);
    const row = make("tr", "", null, make("td", "", null, button));
    for (const name of names) row.append(make("td", "", writeValue(node.facts[name] ?? "")));
    row.append(make("td", "", node.use));
    if (node.use) row.dataset.use = node.use;
    body.append(row);
  }
  table.append(make("thead", "", null, head), body);
  return make("div", "tp-scroll", null, table);
}
