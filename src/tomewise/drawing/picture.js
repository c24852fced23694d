// Draws a picture (`tomewise.pictures.Picture` as JSON) into an element: head, tools, drawing, list, details.
// Needs d3 7 as a global, and `picture.css`. Fetches nothing, and runs no text as HTML.
import { chooseClosed, indexPicture } from "./layouts.js";
import { make, makeButton, makeList, showDetails } from "./details.js";
import { saveFile, writeGraphml, writeSvg } from "./save.js";
import { Canvas } from "./canvas.js";

/** Draw `picture` into `host`, in place of what is there. `addresses` gives links, see `showDetails`. */
export function drawPicture(host, picture, addresses = {}) {
  const index = indexPicture(picture);
  const hidden = new Set();
  let words = "";
  let canvas = null;
  let opener = null;
  const isVisible = (node) => !hidden.has(node.group) && (!words || `${node.mark} ${node.label} ${node.text}`.toLowerCase().includes(words));
  const stage = make("div", "tp-stage");
  const listing = make("div", "tp-listing");
  const panel = make("aside", "tp-details");
  panel.setAttribute("aria-label", "Details");
  const body = make("div", "tp-body", null, stage, listing, panel);

  const close = () => {
    if (panel.hidden) return;
    panel.hidden = true;
    body.classList.remove("tp-open");
    canvas?.select(null);
    if (opener?.isConnected) opener.focus({ preventScroll: true });
    else if (opener?.id) canvas?.focus(opener.id);
  };
  const open = (id) => {
    if (id === null) return close();
    if (panel.hidden || !panel.contains(document.activeElement)) opener = document.activeElement;
    panel.hidden = false;
    body.classList.add("tp-open");
    canvas?.select(id);
    if (canvas && !stage.hidden && canvas.places.has(id)) canvas.reveal(id);
    showDetails(panel, picture, index, id, open, close, addresses);
    return undefined;
  };
  const refresh = () => {
    canvas?.show(isVisible);
    listing.replaceChildren(makeList(picture, index, isVisible, open));
  };
  const view = (name) => {
    const asList = name === "list";
    stage.hidden = asList;
    listing.hidden = !asList;
    for (const button of views.children) button.setAttribute("aria-pressed", String(button.dataset.view === name));
    host.classList.toggle("tp-as-list", asList);
  };

  const views = make("div", "tp-segment");
  views.setAttribute("role", "group");
  views.setAttribute("aria-label", "View");
  for (const [name, word] of [["drawing", picture.kind === "graph" ? "Graph" : "Drawing"], ["list", "List"]]) {
    if (name === "drawing" && picture.kind === "table") continue;
    const button = makeButton("", word, () => view(name));
    button.dataset.view = name;
    views.append(button);
  }
  const search = make("input", "tp-search");
  Object.assign(search, { type: "search", placeholder: "Find" });
  search.setAttribute("aria-label", "Find in this picture");
  search.addEventListener("input", () => { words = search.value.trim().toLowerCase(); refresh(); });
  const name = picture.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-") || "picture";
  const zooming = make("div", "tp-segment tp-zoom", null,
    makeButton("", "−", () => canvas.change(1 / 1.4), "Zoom out"),
    makeButton("", "+", () => canvas.change(1.4), "Zoom in"),
    makeButton("", "Fit", () => canvas.fit(), "Fit the drawing to the window"));
  const saving = make("div", "tp-segment tp-save", null,
    makeButton("tp-svg", "SVG", () => saveFile(`${name}.svg`, "image/svg+xml", writeSvg(canvas.svg.node(), picture.about)), "Save as SVG"),
    makeButton("", "JSON", () => saveFile(`${name}.json`, "application/json", JSON.stringify(picture, null, 1)), "Save as JSON"),
    makeButton("", "GraphML", () => saveFile(`${name}.graphml`, "application/graphml+xml", writeGraphml(picture)), "Save as GraphML"));
  const tools = make("div", "tp-tools", null, views, zooming, search, makeLegend(picture, hidden, refresh), saving);

  host.classList.add("tp");
  host.replaceChildren(makeHead(picture), tools, body);
  host.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    event.preventDefault();
    close();
  });
  panel.hidden = true;
  listing.replaceChildren(makeList(picture, index, isVisible, open));
  view(picture.kind === "table" || !picture.nodes.length ? "list" : "drawing");
  if (picture.kind !== "table" && picture.nodes.length) canvas = new Canvas(stage, picture, index, chooseClosed(index), { open });
  return { open, close, fit: () => canvas?.fit() };
}

function makeHead(picture) {
  const count = picture.shown < picture.total ? `${picture.shown.toLocaleString("en")} of ${picture.total.toLocaleString("en")} shown` : "";
  const head = make("header", "tp-head", null,
    make("p", "tp-kicker", [picture.title, count].filter(Boolean).join(" · ")),
    make("h1", "", picture.about || picture.title));
  for (const text of picture.missing) head.append(make("p", "tp-missing", text));
  return head;
}

/** The groups with their counts; each can be hidden. */
function makeLegend(picture, hidden, refresh) {
  const legend = make("div", "tp-legend");
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "Show or hide");
  picture.groups.forEach((group, place) => {
    const count = picture.nodes.filter((node) => node.group === group.id).length;
    if (!count) return;
    const button = makeButton("", null, () => {
      hidden.delete(group.id) || hidden.add(group.id);
      button.setAttribute("aria-pressed", String(!hidden.has(group.id)));
      refresh();
    });
    button.append(make("i", `tp-dot tp-${group.shape}`), `${group.label} `, make("small", "", count.toLocaleString("en")));
    button.firstChild.dataset.group = place % 6;
    button.setAttribute("aria-pressed", "true");
    legend.append(button);
  });
  const keys = [["cited", "tp-used", "cited by the answer"], ["shown", "tp-unseen", "not seen by the answer"]];
  for (const [use, look, words] of keys) {
    if (!picture.nodes.some((node) => node.use === use)) continue;
    legend.append(make("span", "tp-key", null, make("i", `tp-dot tp-circle ${look}`), words));
  }
  return legend;
}
