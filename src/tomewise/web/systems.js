// The system that answers, its settings in words, and what else belongs to a question: options, instructions, limits.
import { Button, Field, Fold, NoSystem, findSystem, html, link, useRef } from "./parts.js";
import { nameModel } from "./models.js";

// ---------------------------------------------------------------- the system

/** `choice` is `{system, variant, settings}`; the name that is sent has the variant behind a colon. */
function nameSystem(choice) {
  return choice.variant ? `${choice.system}:${choice.variant}` : choice.system;
}

/** The choice that such a name makes. */
export function readChoice(name, settings = {}) {
  const [system, variant = ""] = name.split(/:(.*)/s);
  return { system, variant, settings };
}

/** What keeps a chosen system from answering: no such system, or memory that it needs and that is not built. */
export function Hindrance({ choice, onChange, info, ready, tome }) {
  const known = findSystem(choice.system, info.systems);
  if (!known) return html`<${NoSystem} name=${choice.system} systems=${info.systems} onTake=${(name) => onChange(readChoice(name))} />`;
  if (ready.includes(known.name)) return null;
  return html`<p class="composer-note">${choice.system} needs memory that is not built yet: it cannot answer. <a href=${link(tome, "build", { system: choice.system })}>See what it costs</a></p>`;
}

/** What a system does, in a line. */
export function describeSystem(system) {
  return (system?.summary || system?.description?.split("\n\n")[0]) ?? "";
}

const KINDS = {
  "one search": "At once, for plain questions", "two searches": "At once, for plain questions", loop: "Several rounds, for answers that lie in several places",
  "reads in order": "Reads all of the text", "no search": "Reads all of the text",
};

/** The systems in groups, the recommended one first, those that cannot answer yet last: `[title, systems]`. */
function groupSystems(info, data) {
  const groups = new Map();
  const put = (title, system) => groups.set(title, [...(groups.get(title) ?? []), system]);
  const best = info.systems.find((system) => system.name === data.contents.recommended?.system);
  if (best) put("Recommended for this tome", best);
  const rest = info.systems.filter((system) => system !== best);
  const isReady = (system) => data.ready.includes(system.name);
  rest.filter((system) => isReady(system) && system.effort).forEach((system) => put("By effort", system));
  const papers = rest.filter((system) => !system.effort && isReady(system));
  for (const title of new Set(Object.values(KINDS))) papers.filter((system) => KINDS[system.kind] === title).forEach((system) => put(title, system));
  papers.filter((system) => !KINDS[system.kind]).forEach((system) => put("Others", system));
  rest.filter((system) => !isReady(system)).forEach((system) => put("Needs a build first", system));
  return [...groups];
}

/** The system for a tome at first: the recommended one, if it can answer. */
export function chooseSystem(data) {
  const best = data?.contents.recommended?.system;
  return data?.ready.includes(best) ? best : "hybrid";
}

export function SystemSelect({ choice, onChange, info, data, label = "System" }) {
  return html`<select aria-label=${label} class="system" value=${choice.system} title=${describeSystem(findSystem(choice.system, info.systems))}
    onChange=${(event) => onChange(readChoice(event.target.value))}>
    ${groupSystems(info, data).map(([title, systems]) => html`<optgroup key=${title} label=${title}>${systems.map((system) => html`<option key=${system.name} value=${system.name}>${system.name}${system.effort ? ` (${system.effort})` : ""}</option>`)}</optgroup>`)}
    ${info.systems.some((system) => system.name === choice.system) ? null : html`<option value=${choice.system}>${choice.system}</option>`}
  </select>`;
}

/** All systems with a line on each: what it does, and what a question costs. */
export function SystemList({ choice, onChange, info, data, tome }) {
  return html`<div class="systems">${groupSystems(info, data).map(([title, systems], place) => html`<${Fold} key=${title} open=${place === 0 || systems.some((system) => system.name === choice.system)} summary=${`${title} (${systems.length})`}>
    <ul>${systems.map((system) => html`<li key=${system.name}><label class="check"><input type="radio" name="system" checked=${system.name === choice.system} onChange=${() => onChange(readChoice(system.name))} />
      <span><b>${system.name}</b>${system.effort ? ` (effort: ${system.effort})` : ""} ${describeSystem(system)} <small class="soft">${describeCalls(system)}${data.contents.recommended?.system === system.name ? ` Recommended: ${data.contents.recommended.because}.` : ""}
        ${data.ready.includes(system.name) ? null : html`<a href=${link(tome, "build", { system: system.name })}>See what its build costs</a>`}</small></span></label></li>`)}</ul></${Fold}>`)}</div>`;
}

function describeCalls({ ask }) {
  if (!ask?.formula) return "";
  return ask.most === 1 ? "One call." : ask.most === null ? `Calls: ${ask.formula}.` : `At most ${ask.most} calls.`;
}

/** Fields for the settings of a system, made from what it says of them. A field left as it is keeps the default. */
export function SettingsForm({ choice, onChange, info }) {
  const system = info.systems.find((each) => each.name === choice.system);
  if (!system) return html`<p class="soft">The settings of ${choice.system} are not listed here.</p>`;
  const put = (name, value) => {
    const { [name]: _, ...rest } = choice.settings;
    onChange({ ...choice, settings: value === undefined ? rest : { ...rest, [name]: value } });
  };
  const variants = Object.keys(system.ablations ?? {});
  return html`<div class="settings"><div class="fields">
      ${variants.length ? html`<${Field} label="Variant, as papers compare them"><select value=${choice.variant} onChange=${(event) => onChange({ ...choice, variant: event.target.value })}>
        <option value="">as it is</option>${variants.map((name) => html`<option key=${name}>${name}</option>`)}</select></${Field}>` : null}
      ${system.settings.map((setting) => html`<${SettingField} key=${`${choice.system} ${setting.name}`} setting=${setting} value=${choice.settings[setting.name]} onChange=${(value) => put(setting.name, value)} />`)}
    </div>
    ${Object.keys(choice.settings).length || choice.variant ? html`<${Button} small kind="quiet" onClick=${() => onChange(readChoice(choice.system))}>Back to the defaults</${Button}>` : null}
  </div>`;
}

function capitalise(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The least and the most that a number may be, in words and as they are. */
function findBounds({ type, most: limit }) {
  const least = /(?:from|above) (-?[\d.]+)/.exec(type)?.[1];
  const most = /(?:to|below) (-?[\d.]+)/.exec(type)?.[1] ?? limit ?? undefined;
  const words = least !== undefined && most !== undefined ? `${least} to ${Number(most).toLocaleString("en")}` : least !== undefined ? `${least} or more` : "";
  return { least, most, words };
}

/** One setting: what it does as its label; its name in commands, its bounds and its default below. */
function SettingField({ setting, value, onChange }) {
  const { name, type, help } = setting;
  const fallback = setting.default;
  const shown = fallback === null || fallback === undefined ? "its own" : String(fallback);
  const allowed = type.startsWith('"') ? type.split(" | ").map((each) => JSON.parse(each)) : type === "boolean" ? [true, false] : null;
  const write = (each) => (each === true ? "yes" : each === false ? "no" : String(each));
  const label = help ? capitalise(help) : capitalise(name.replaceAll("_", " "));
  if (allowed) {
    return html`<${Field} label=${label} hint=${html`<code>${name}</code>`}><select class=${value === undefined ? "soft" : ""} value=${value === undefined ? "" : String(value)} onChange=${(event) => onChange(allowed.find((each) => String(each) === event.target.value))}>
      <option value="">${write(fallback ?? shown)}</option>${allowed.filter((each) => each !== fallback).map((each) => html`<option key=${each} value=${String(each)}>${write(each)}</option>`)}</select></${Field}>`;
  }
  const isNumber = /^(integer|number|float|int)\b/.test(type);
  const { least, most, words } = findBounds(setting);
  const isOutside = isNumber && value !== undefined && (Number.isNaN(value) || value < Number(least ?? -Infinity) || value > Number(most ?? Infinity));
  const read = (text) => (text === "" ? undefined : isNumber ? Number(text) : text);
  return html`<${Field} label=${label} hint=${html`<code>${name}</code> ${words}${isOutside ? ": this is outside" : ""}`}><input type=${isNumber ? "number" : "text"} step=${type.startsWith("int") ? 1 : "any"} min=${least} max=${most} aria-invalid=${isOutside}
    value=${value ?? ""} placeholder=${shown} onInput=${(event) => onChange(read(event.target.value))} /></${Field}>`;
}

// ---------------------------------------------------------------- what else belongs to a question

export function letter(place) {
  return String.fromCharCode(65 + place);
}

function OptionsForm({ options, onChange }) {
  const box = useRef(null);
  const put = (place, text) => onChange(options.map((option, at) => (at === place ? text : option)));
  const add = () => {
    if (options.length < 26) onChange([...options, ""]);
    requestAnimationFrame(() => box.current?.querySelector(".option:last-of-type input")?.focus());
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // the form asks a question, which an option is not
    add();
  };
  return html`<fieldset class="stack" ref=${box}><legend class="field-label">Options to choose from</legend>
    ${options.map((option, place) => html`<div class="option" key=${place}><b>${letter(place)}</b>
      <input aria-label=${`Option ${letter(place)}`} value=${option} onInput=${(event) => put(place, event.target.value)} onKeyDown=${onKey} />
      <${Button} small kind="quiet" aria-label=${`Remove option ${letter(place)}`} onClick=${() => onChange(options.filter((_, at) => at !== place))}>×</${Button}></div>`)}
    ${options.length < 26 ? html`<${Button} small onClick=${add}>Add option ${letter(options.length)}</${Button}>` : null}
  </fieldset>`;
}

export const NO_EXTRAS = { options: [], instructions: "", budget: "" };

export function ExtrasForm({ extras, onChange }) {
  const put = (name) => (event) => onChange({ ...extras, [name]: event.target.value });
  return html`<div class="extras">
    <${OptionsForm} options=${extras.options} onChange=${(options) => onChange({ ...extras, options })} />
    <div class="stack">
      <${Field} label="Instructions" hint="How to answer, such as “in one word”."><textarea rows="2" value=${extras.instructions} onInput=${put("instructions")}></textarea></${Field}>
      <${Field} label="Cost at most" hint="Such as “20 calls”, “5 minutes”, “$0.50”."><input value=${extras.budget} maxlength="100" placeholder="no limit" onInput=${put("budget")} /></${Field}>
    </div>
  </div>`;
}

/** The request body of a question. `choice` and `sources` are null where a session has fixed them. */
export function makeBody(question, { choice, extras, session = null, sources = null, model = "", accept }) {
  const options = extras.options.map((option) => option.trim()).filter(Boolean);
  return {
    question: question.trim(),
    ...(choice ? { system: nameSystem(choice), settings: choice.settings } : {}),
    ...(options.length ? { options } : {}),
    ...(extras.instructions.trim() ? { instructions: extras.instructions.trim() } : {}),
    ...(session ? { session } : {}),
    ...(sources?.documents.length ? { documents: sources.documents } : {}),
    ...(sources?.where.length ? { where: sources.where } : {}),
    ...nameModel(model),
    ...(extras.budget.trim() ? { budget: extras.budget.trim() } : {}),
    accept, // more than this is asked for only after its price was shown
  };
}

/** How many settings and extras differ from what a question has at first. */
export function countExtras(choice, extras) {
  return Object.keys(choice.settings).length + (choice.variant ? 1 : 0) + extras.options.filter(Boolean).length
    + ["instructions", "budget"].filter((name) => extras[name] !== "").length;
}

