// What is done with a tome as a whole: made, renamed, exported, imported, deleted.
import { Button, Dialog, ErrorNotice, Field, formatBytes, html, link, moveKeys, useEffect, useRef, useState } from "./parts.js";
import { send, tomePath, upload } from "./api.js";

/** What a name lacks, in words; empty for one that can be taken. */
function findFault(name, taken) {
  if (name && !/^[\p{L}\p{N}_][\p{L}\p{N}_-]{0,63}$/u.test(name)) return "Use up to 64 letters, digits, - and _.";
  return taken.includes(name) ? "There is a tome of this name." : "";
}

/** A name for a tome that begins with a file or a folder. */
export function suggestName(path) {
  const folder = path.includes("/") ? path.split("/")[0] : path.replace(/\.[^.]+$/, "");
  return folder.normalize("NFC").replaceAll(/[^\p{L}\p{N}_-]+/gu, "-").replaceAll(/^-+|-+$/g, "").slice(0, 64);
}

/** A window that asks for a name. `act(name)` does what it is for; `first` stands there at first. */
export function NameDialog({ title, first, taken, word, act, onClose, children }) {
  const [name, setName] = useState(first);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const input = useRef(null);
  useEffect(() => input.current.select(), []);
  const fault = findFault(name, taken);
  const submit = async (event) => {
    event.preventDefault();
    if (!name || fault) return;
    setBusy(true);
    try {
      await act(name);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Cancel</${Button}>
    <button class="button primary" form="name-tome" disabled=${busy || !name || Boolean(fault)}>${word}</button>`}>
    <form id="name-tome" onSubmit=${submit}>
      <${Field} label="Name" hint=${fault || "It becomes the name of a file in the server's folder."}>
        <input ref=${input} value=${name} onInput=${(event) => setName(event.target.value)} autocomplete="off" spellcheck=${false} maxlength="64" aria-invalid=${Boolean(fault)} />
      </${Field}>
    </form>
    ${children}<${ErrorNotice} error=${error} />
  </${Dialog}>`;
}

/** What a menu offers for a tome. `onAct` is called with "rename" or "delete", which open their windows. */
export function listActions({ tome, isOwned, canWrite, onAct }) {
  return [
    { label: "Export", hint: "all of it, as one file", href: new URL(tomePath(tome, "export"), document.baseURI).href, download: `${tome}.jsonl` },
    canWrite && isOwned ? { label: "Rename…", onClick: () => onAct("rename") } : null,
    canWrite && isOwned ? { label: "Delete…", danger: true, onClick: () => onAct("delete") } : null,
  ];
}

/** The window of such an act. `onDone` is called with the tome's new name, or null. */
export function TomeAct({ act, tome, taken, onClose, onDone }) {
  if (act === "delete") return html`<${Deletion} tome=${tome} onClose=${onClose} onDone=${() => { moveKeys(tome, null); onDone(null); }} />`;
  if (act !== "rename") return null;
  const rename = async (name) => {
    await send("POST", tomePath(tome, "rename"), { name });
    moveKeys(tome, name);
    onDone(name);
  };
  return html`<${NameDialog} title=${`Rename ${tome}`} first=${tome} taken=${taken.filter((name) => name !== tome)} word="Rename" act=${rename} onClose=${onClose} />`;
}

function Deletion({ tome, onClose, onDone }) {
  const [name, setName] = useState("");
  const [state, setState] = useState({});
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  const remove = (event) => {
    event.preventDefault();
    if (name !== tome) return;
    setState({ busy: true });
    send("DELETE", tomePath(tome), undefined, { query: { confirm: name } }).then(onDone, (error) => setState({ error }));
  };
  return html`<${Dialog} title=${`Delete ${tome}?`} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Keep it</${Button}>
    <button class="button danger" form="delete-tome" disabled=${state.busy || name !== tome}>${state.busy ? "Deleting…" : "Delete for good"}</button>`}>
    <p>Its documents, its memory, its history and its sessions go with it. The files that they came from are not touched. Export it first to keep a copy.</p>
    <form id="delete-tome" onSubmit=${remove}><${Field} label=${html`Write its name, <b>${tome}</b>, to delete it`}>
      <input ref=${input} value=${name} onInput=${(event) => setName(event.target.value)} autocomplete="off" spellcheck=${false} /></${Field}></form>
    <${ErrorNotice} error=${state.error} />
  </${Dialog}>`;
}

/** Asks for a file that was exported, and a name; makes a tome of it, and goes there. */
export function Importing({ file, taken, navigate, onClose }) {
  const [sent, setSent] = useState(0);
  const act = async (name) => {
    await upload(tomePath(name, "import"), new Blob([file], { type: "application/jsonl" }), setSent);
    navigate(link(name));
  };
  return html`<${NameDialog} title="Import a tome" first=${suggestName(file.name)} taken=${taken} word="Import" act=${act} onClose=${onClose}>
    <p class="soft">${file.name}${sent ? html`: <progress aria-label="Sent" max=${file.size || 1} value=${sent < file.size ? sent : undefined}></progress>${sent < file.size ? "sending" : `the server makes the tome of ${formatBytes(file.size)}`}` : ""}</p>
  </${NameDialog}>`;
}
