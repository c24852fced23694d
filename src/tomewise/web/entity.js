// One entity of the graph: its facts, the passages that name it, and the entities around it.
import { Button, Empty, Head, Loading, Missing, Tag, count, formatCount, html, link, useGet, useState } from "./parts.js";
import { Passages } from "./answer.js";
import { get, tomePath } from "./api.js";

const LISTS = ["facts", "passages", "neighbours"];

/** The address of the page of an entity. */
export function linkEntity(tome, name) {
  return link(tome, "entity", { name });
}

export function EntityView({ tome, query }) {
  return html`<${EntityPage} key=${query.name} tome=${tome} query=${query} />`; // rows that were read belong to one entity
}

function EntityPage({ tome, query }) {
  const path = tomePath(tome, "entity");
  const { data, error } = useGet(query.name ? path : null, { name: query.name });
  const [more, setMore] = useState({ facts: [], passages: [], neighbours: [], start: 0, error: null });
  if (!data) return html`<${Head} title=${query.name || "Entity"} />${error || !query.name ? html`<${Missing} error=${error ?? { code: "unknown_name" }} title="No entity of this name is known" back=${link(tome, "memory")} words="See the memory">Entities are known once a system with a graph was built.</${Missing}>` : html`<${Loading} />`}`;
  const rows = Object.fromEntries(LISTS.map((name) => [name, [...data[name], ...more[name]]]));
  const isWhole = LISTS.every((name) => rows[name].length >= data.counts[name]);
  const read = () => {
    const start = Math.max(...LISTS.map((name) => rows[name].length));
    get(path, { name: query.name, start }).then((page) => setMore((now) => ({ ...Object.fromEntries(LISTS.map((name) => [name, [...now[name], ...page[name]]])), error: null })), (problem) => setMore((now) => ({ ...now, error: problem })));
  };
  if (!data.facts.length && !data.passages.length && data.similar.length) {
    return html`<${Head} title=${query.name}>No entity has exactly this name.</${Head}><h2>Did you mean</h2>
      <ul class="neighbours">${data.similar.map((name) => html`<li key=${name}><a href=${linkEntity(tome, name)} dir="auto">${name}</a></li>`)}</ul>`;
  }
  return html`<${Head} title=${html`<span dir="auto">${data.name}</span>`} actions=${html`<${Button} href=${link(tome, "memory", { around: data.name })}>Draw what is around it</${Button}><${Button} kind="primary" href=${link(tome, "ask", { question: `What is told about ${data.name}?` })}>Ask about it</${Button}>`}>
      ${data.kind ? html`<${Tag}>${data.kind}</${Tag}> ` : null}${[count(data.counts.facts, "fact"), count(data.counts.passages, "passage"), count(data.counts.neighbours, "neighbour")].join(" · ")}</${Head}>
    <div class="split">
      <section class="stack" aria-labelledby="facts"><h2 id="facts">Facts</h2>
        ${rows.facts.length ? html`<ul class="entity-facts">${rows.facts.map((fact, place) => html`<li key=${place} dir="auto">${fact.text}</li>`)}</ul>` : html`<p class="soft">No fact names it.</p>`}
        <h2>Passages</h2>
        ${rows.passages.length ? html`<${Passages} passages=${rows.passages} tome=${tome} />` : html`<p class="soft">No passage names it.</p>`}
      </section>
      <section class="stack" aria-labelledby="around"><h2 id="around">Around it</h2>
        ${rows.neighbours.length ? html`<ul class="neighbours">${rows.neighbours.map((each) => html`<li key=${each.name}><a href=${linkEntity(tome, each.name)} dir="auto">${each.name}</a> <small class="soft">${count(each.facts, "fact")}</small></li>`)}</ul>` : html`<${Empty} title="Alone">No fact joins it with another entity.</${Empty}>`}
      </section></div>
    ${isWhole ? null : html`<${Button} onClick=${read}>Show more (${formatCount(LISTS.reduce((sum, name) => sum + Math.max(0, data.counts[name] - rows[name].length), 0))} left)</${Button}>`}`;
}
