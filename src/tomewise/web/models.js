// The models that the owner of the server configured: which one answers, what it costs, and whether it does. Keys stay with the server.
import { Button, Dialog, ErrorNotice, Loading, Notice, formatCount, formatMoney, formatSeconds, html, readStored, useEffect, useGet, useState, writeStored } from "./parts.js";
import { get, send } from "./api.js";

const watchers = new Set();

/** The model that questions and builds ask: `[name, choose]`; an empty name is the first of the server. It holds for all tomes and outlives a reload. */
export function useModel() {
  const [name, setName] = useState(readStored("model") ?? "");
  useEffect(() => {
    watchers.add(setName);
    return () => watchers.delete(setName);
  }, []);
  const choose = (chosen) => {
    writeStored("model", chosen || null);
    for (const watch of watchers) watch(chosen);
  };
  return [name, choose];
}

/** A model as people know it: what answers without one is not a model. */
export function describeModel(name) {
  return name === "extractive" ? "no model" : name;
}

/** The field of a request that names the model, where it is not the first. */
export function nameModel(name) {
  return name ? { model: name } : {};
}

/** The model in the bar above; a click shows all. */
export function ModelButton({ info }) {
  const [isOpen, setIsOpen] = useState(false);
  const [name, choose] = useModel();
  useEffect(() => {
    const close = () => setIsOpen(false); // it does not lie over the next view
    addEventListener("hashchange", close);
    return () => removeEventListener("hashchange", close);
  }, []);
  useEffect(() => {
    if (name) get("api/models").then(({ models }) => models.some((model) => model.name === name) || choose(""), () => {}); // the owner took it away
  }, [name, isOpen]);
  const shown = name || info.model;
  return html`<button type="button" class="model" aria-haspopup="dialog" title=${`Model: ${describeModel(shown)}. Spent since the server started: ${formatMoney(info.spent.dollars)}.`} onClick=${() => setIsOpen(true)}><span class="hidden">Model: </span>${describeModel(shown)}</button>
    ${isOpen ? html`<${Models} name=${name} choose=${choose} onClose=${() => setIsOpen(false)} />` : null}`;
}

function Models({ name, choose, onClose }) {
  const { data, error } = useGet("api/models");
  const models = data?.models ?? [];
  const isKnown = models.some((model) => model.name === name);
  return html`<${Dialog} title="Models" onClose=${onClose}>
    <p class="soft">Questions and builds ask the chosen one. The owner of the server names more with <code>tome serve --offer NAME</code>; their keys never come here.</p>
    <${ErrorNotice} error=${error} />${data || error ? null : html`<${Loading} />`}
    <ul class="models">${models.map((model) => html`<${ModelRow} key=${model.name} model=${model} isChosen=${isKnown ? model.name === name : model.is_default} onChoose=${() => choose(model.is_default ? "" : model.name)} />`)}</ul>
  </${Dialog}>`;
}

function ModelRow({ model, isChosen, onChoose }) {
  const [state, setState] = useState({});
  const test = () => {
    setState({ busy: true });
    send("POST", "api/models/test", { model: model.name }).then((result) => setState({ result }), (error) => setState({ error }));
  };
  const isExtractive = model.name === "extractive";
  const price = model.input_price === null || model.output_price === null ? "price unknown" : `$${model.input_price} a million tokens in, $${model.output_price} out`;
  const facts = isExtractive ? ["finds and quotes, does not write", "free"] : [model.window ? `reads ${formatCount(model.window)} tokens at once` : "window unknown", price];
  return html`<li><label class="check"><input type="radio" name="model" checked=${isChosen} onChange=${onChoose} /><span><b>${isExtractive ? "No model" : model.name}</b>${isExtractive ? html` <small class="soft">extractive</small>` : null}<br /><small class="soft">${facts.join(" · ")}</small></span></label>
    <${Button} small disabled=${state.busy} onClick=${test} aria-label=${`Test ${model.name}`}>${state.busy ? "Asking…" : "Test"}</${Button}>
    ${state.result ? html`<${Notice} kind=${state.result.ok ? "good" : "error"} title=${state.result.ok ? "It answers." : "It does not answer."}>${state.result.reason || `It took ${formatSeconds(state.result.seconds)}.`}</${Notice}>` : null}
    <${ErrorNotice} error=${state.error} /></li>`;
}
