// Which documents a question looks into: single ones, folders with all that is below them, and tests of metadata.
import { Button, Dialog, ErrorNotice, Field, Loading, count, formatCount, html, nameDocument, usePages, useState } from "./parts.js";
import { tomePath } from "./api.js";

/** `documents` are ids; one that ends with "/" is a folder. `where` are tests such as "year>=1911". Both empty: everything. */
export const ALL = { documents: [], where: [] };
const MOST = 1000; // documents and folders of one question

export function isAll({ documents, where }) {
  return !documents.length && !where.length;
}

/** Sources in a few words: "all", "2 sources", "notes/, year>=1911". */
export function describeSources({ documents, where }) {
  const names = documents.length > 2 ? [count(documents.length, "source")] : documents.map((id) => (id.endsWith("/") ? id : nameDocument(id)));
  return [...names, ...where].join(", ") || "all";
}

/** The sources of a stored question or session, whose `within` is the server's. */
export function readScope(within) {
  return { documents: within?.documents ?? [], where: (within?.where ?? []).map(({ field, operator, value }) => `${field}${operator}${value}`) };
}

/** Lists documents of a tome, with words, folder and tests: `{rows, folders, fields, total, next, more, error}`. */
export function useDocuments(tome, { words = "", folder = "", where = [], turn = 0 }) {
  return { folders: {}, fields: [], total: 0, ...usePages(tomePath(tome, "documents"), "documents", "after", { q: words, folder, where, limit: 100 }, turn) };
}

/** All folders, those above others too, sorted, with how many documents stand in them and below. */
export function listFolders(folders) {
  const sums = new Map();
  for (const [folder, number] of Object.entries(folders)) {
    for (const { index } of `${folder}/`.matchAll(/[^/]\//g)) { // "https://example.org" is below "https:"
      const name = folder.slice(0, index + 1);
      sums.set(name, (sums.get(name) ?? 0) + number);
    }
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A window in which sources are chosen. `onChange` gets them when it is closed with "Use these". */
export function SourcesDialog({ tome, sources, onChange, onClose }) {
  const [chosen, setChosen] = useState(sources.documents);
  const [where, setWhere] = useState(sources.where);
  const [words, setWords] = useState("");
  const [folder, setFolder] = useState("");
  const list = useDocuments(tome, { words, folder, where });
  const isWithin = (id) => chosen.some((each) => each.endsWith("/") && id.startsWith(each));
  const toggle = (id) => setChosen((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now.filter((each) => !(id.endsWith("/") && each.startsWith(id))), id].slice(0, MOST)));
  const folders = listFolders(list.folders);
  const use = () => { onChange({ documents: chosen, where }); onClose(); };
  const clear = () => { onChange(ALL); onClose(); };
  const shown = { documents: chosen, where };
  return html`<${Dialog} title="Which sources to look into" onClose=${onClose} actions=${html`<${Button} onClick=${clear}>Look into all</${Button}><${Button} kind="primary" onClick=${use}>Use ${isAll(shown) ? "all" : chosen.length ? formatCount(chosen.length) : "these"}</${Button}>`}>
    <div class="sources-tools"><${Field} label="Find by title or name"><input type="search" value=${words} onInput=${(event) => setWords(event.target.value)} /></${Field}>
      ${folders.length ? html`<${FolderSelect} folders=${folders} folder=${folder} onChange=${setFolder} />` : null}</div>
    <${WhereForm} fields=${list.fields} where=${where} onChange=${setWhere} />
    <${ErrorNotice} error=${list.error} />
    ${list.rows === null && !list.error ? html`<${Loading} />` : null}
    <ul class="sources" aria-label="Sources">
      ${words ? null : folders.filter(([name]) => `${name}/`.startsWith(folder && `${folder}/`)).map(([name, number]) => html`<li key=${`${name}/`}><label class="check"><input type="checkbox" checked=${chosen.includes(`${name}/`)} disabled=${isWithin(name)} onChange=${() => toggle(`${name}/`)} />
        <b dir="auto">${name}/</b> <small class="soft">${count(number, "document")}</small></label></li>`)}
      ${(list.rows ?? []).map((row) => html`<li key=${row.id}><label class="check"><input type="checkbox" checked=${chosen.includes(row.id) || isWithin(row.id)} disabled=${isWithin(row.id)} onChange=${() => toggle(row.id)} />
        <span dir="auto">${nameDocument(row.id, row.title)}</span> <small class="soft">${Object.entries(row.metadata).slice(0, 3).map(([name, value]) => `${name}: ${value}`).join(", ")}</small></label></li>`)}
    </ul>
    ${list.rows && !list.rows.length ? html`<p class="soft">No document fits.</p>` : null}
    ${list.next ? html`<${Button} small onClick=${list.more}>Show more (${formatCount(list.total - list.rows.length)} left)</${Button}>` : null}
    <p class="soft" role="status">${isAll(shown) ? "Questions look into everything." : `Questions look into: ${describeSources(shown)}.`}</p>
  </${Dialog}>`;
}

export function FolderSelect({ folders, folder, onChange }) {
  return html`<${Field} label="Folder"><select value=${folder} onChange=${(event) => onChange(event.target.value)}>
    <option value="">all</option>${folders.map(([name, number]) => html`<option key=${name} value=${name}>${`${name}/ (${formatCount(number)})`}</option>`)}</select></${Field}>`;
}

const OPERATORS = { "=": "is", "!=": "is not", ">=": "at least", "<=": "at most", ">": "more than", "<": "less than" };

/** Tests of metadata: all must hold. */
function WhereForm({ fields, where, onChange }) {
  const [field, setField] = useState("");
  const [operator, setOperator] = useState("=");
  const [value, setValue] = useState("");
  if (!fields.length && !where.length) return null;
  const name = field || fields[0];
  const add = (event) => {
    event.preventDefault();
    if (!value.trim()) return;
    onChange([...where, `${name}${operator}${value.trim()}`]);
    setValue("");
  };
  return html`<div class="where">
    ${where.length ? html`<p class="marks">${where.map((test) => html`<${Button} small key=${test} aria-label=${`Take away ${test}`} onClick=${() => onChange(where.filter((each) => each !== test))}>${test} ×</${Button}>`)}</p>` : null}
    ${fields.length ? html`<form class="where-row" onSubmit=${add}>
      <select aria-label="Field" value=${name} onChange=${(event) => setField(event.target.value)}>${fields.map((each) => html`<option key=${each}>${each}</option>`)}</select>
      <select aria-label="Test" value=${operator} onChange=${(event) => setOperator(event.target.value)}>${Object.entries(OPERATORS).map(([sign, words]) => html`<option key=${sign} value=${sign}>${words}</option>`)}</select>
      <input aria-label="Value" value=${value} placeholder="value" onInput=${(event) => setValue(event.target.value)} />
      <${Button} small type="submit">Add</${Button}></form>` : null}
  </div>`;
}
