// Memory as pictures: the layers of a tome, and what the answers used of them.
import { Button, Empty, ErrorNotice, Field, Head, Loading, count, html, link, linkSpan, useEffect, useGet, useRef, useState } from "./parts.js";
import { tomePath } from "./api.js";
import { linkEntity } from "./entity.js";

const KINDS = {
  graph: "Entities and facts", tree: "Tree of summaries", memtree: "Tree that grows", episodes: "Episodes in order", schemata: "Schemata and their overlaps", communities: "Communities and their reports", gists: "Gists", pages: "Pages in order",
};
const TELLING = 60; // entities of an overview: as many as the eye can follow
const SIZES = { "": "the 60 most telling", 200: "the first 200", 500: "the first 500" };

/** A layer by a name for people; its own name follows where several are of one kind. */
export function nameLayer(layer, layers) {
  const kind = layer.split(":")[0];
  const name = KINDS[kind] ?? kind;
  return layers.filter((other) => other.split(":")[0] === kind).length > 1 ? `${name} (${layer.split(":").slice(1).join(":") || kind})` : name;
}

export function MemoryView({ tome, query, navigate }) {
  const layers = useGet(tomePath(tome, "pictures"));
  const traces = useGet(tomePath(tome, "traces"), { limit: 100 });
  const known = layers.data?.layers ?? [];
  const asked = traces.data?.traces ?? [];
  const layer = query.layer ?? known.find((each) => /^graph:.*triples$/.test(each)) ?? known.find((each) => each.startsWith("graph")) ?? known[0] ?? "";
  const trace = query.trace ?? "";
  const isGraph = layer.startsWith("graph");
  const change = (more) => navigate(link(tome, "memory", { layer, trace: query.trace, around: isGraph ? query.around : "", hops: query.hops, most: isGraph ? query.most : "", ...more }));
  const isReady = layers.data && traces.data;
  const path = isReady && layer ? tomePath(tome, "pictures", layer) : null;
  const picture = useGet(path, { trace: query.trace, ...(isGraph ? (query.around ? { around: query.around, hops: query.hops } : { limit: query.most || TELLING }) : {}) });

  if (isReady && !known.length) return html`<${Head} title="Memory" />
    <${Empty} title="Nothing to draw yet" actions=${html`<${Button} kind="primary" href=${link(tome, "build")}>Build a system</${Button}>`}>
      Entities and facts, communities, summaries, episodes and schemata are drawn here once a system has built them.</${Empty}>`;
  return html`
    <${Head} title="Memory">What this tome remembers, and what the answers used of it.</${Head}>
    <${ErrorNotice} error=${layers.error ?? traces.error} />
    <div class="memory-tools">
      <${Field} label="Draw"><select value=${layer} onChange=${(event) => change({ layer: event.target.value, around: "" })}>
        ${known.map((each) => html`<option key=${each} value=${each}>${nameLayer(each, known)}</option>`)}
      </select></${Field}>
      <${Field} label="Highlight what an answer used" wide><select value=${trace} onChange=${(event) => change({ trace: event.target.value })}>
        <option value="">nothing</option>
        ${asked.map((each) => html`<option key=${each.number} value=${each.number}>${`${each.number}. ${each.question.text.slice(0, 90)} (${each.answer.system})`}</option>`)}
      </select></${Field}>
      ${isGraph ? html`<${Around} key=${query.around} around=${query.around ?? ""} hops=${query.hops ?? "1"} most=${query.most ?? ""} change=${change} />` : null}
    </div>
    <${ErrorNotice} error=${picture.error} retry=${picture.reload} />
    ${path && !picture.data && !picture.error ? html`<${Loading} what="Drawing" />` : null}
    ${picture.data ? html`<${Drawing} key=${`${layer} ${trace} ${query.around} ${query.hops} ${query.most}`} picture=${picture.data} addresses=${makeAddresses(tome, isGraph ? layer : null, query)} />` : null}`;
}

/** Chooses the entity around which a graph is drawn, and how far it reaches. */
function Around({ around, hops, most, change }) {
  const [name, setName] = useState(around);
  return html`<form class="memory-around" onSubmit=${(event) => { event.preventDefault(); change({ around: name.trim() }); }}>
    <${Field} label="Around an entity"><input type="search" value=${name} placeholder="its name" onInput=${(event) => setName(event.target.value)} /></${Field}>
    ${around ? html`<${Field} label="Facts away"><select value=${hops} onChange=${(event) => change({ hops: event.target.value })}>${["1", "2", "3"].map((each) => html`<option key=${each}>${each}</option>`)}</select></${Field}>` : null}
    <${Button} type="submit">Draw</${Button}>
    ${around
      ? html`<${Button} kind="quiet" onClick=${() => change({ around: "" })}>Back to the overview</${Button}>`
      : html`<${Field} label="Overview of"><select value=${most} onChange=${(event) => change({ most: event.target.value })}>${Object.entries(SIZES).map(([size, words]) => html`<option key=${size} value=${size}>${words}</option>`)}</select></${Field}>`}
  </form>`;
}

function makeAddresses(tome, graph, query) {
  return {
    passage: (passage) => (passage.end > passage.start ? linkSpan(tome, passage.document, passage.start, passage.end) : null),
    around: (node) => (graph ? link(tome, "memory", { layer: graph, around: node.label, trace: query.trace }) : null),
    page: (node) => (graph ? linkEntity(tome, node.label) : null),
  };
}

/** A picture, drawn by the module that `write_page` puts into its page. */
export function Drawing({ picture, addresses }) {
  const box = useRef(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let isGone = false;
    loadDrawing().then(
      (draw) => !isGone && draw(box.current, picture, addresses),
      () => setError({ message: "The drawing could not be loaded. Is the server still running?" }),
    );
    return () => { isGone = true; };
  }, [picture]);
  return html`<${ErrorNotice} error=${error} /><div ref=${box} class="drawing" role="region" aria-label=${`${picture.title}, ${count(picture.shown, "thing")} shown`}></div>`;
}

let drawing = null;

/** The drawing module and its style, loaded once, when first wanted. */
function loadDrawing() {
  drawing ??= load();
  drawing.catch(() => { drawing = null; });
  return drawing;
}

async function load() {
  const style = document.createElement("link");
  const isStyled = new Promise((resolve, reject) => Object.assign(style, { onload: resolve, onerror: reject, rel: "stylesheet", href: "assets/picture.css" }));
  document.head.prepend(style);
  await Promise.all([isStyled, import("./d3.js")]);
  return (await import("./drawing.js")).drawPicture;
}
