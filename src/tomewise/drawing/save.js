// A drawing as a file: the SVG with the colours that it has on the screen, and the picture as GraphML.

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];

/** The whole drawing as SVG text, whatever part of it the screen shows. */
export function writeSvg(svg, title) {
  const copy = svg.cloneNode(true);
  const live = [svg, ...svg.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  live.forEach((element, place) => {
    const style = getComputedStyle(element);
    if (style.display === "none") copies[place].remove();
    else if (element instanceof SVGGraphicsElement)
      for (const name of KEPT) copies[place].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-label", "style"]) copies[place].removeAttribute(name);
  });
  const scene = svg.querySelector(".tp-scene");
  const box = scene.getBBox();
  copy.querySelector("g").removeAttribute("transform");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", [box.x - 30, box.y - 30, box.width + 60, box.height + 60].map(Math.round).join(" "));
  copy.removeAttribute("width");
  copy.removeAttribute("height");
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x: box.x - 30, y: box.y - 30, width: box.width + 60, height: box.height + 60 })) back.setAttribute(name, value);
  back.setAttribute("fill", getComputedStyle(svg).backgroundColor);
  copy.prepend(back);
  const name = document.createElementNS("http://www.w3.org/2000/svg", "title");
  name.textContent = title;
  copy.prepend(name);
  return new XMLSerializer().serializeToString(copy);
}

/** The picture as GraphML 1.0, which Gephi, yEd, igraph and NetworkX read. A tree and a line are directed. */
export function writeGraphml(picture) {
  const numbers = new Map(picture.nodes.map((node, place) => [node.id, `n${place}`]));
  const groups = new Map(picture.groups.map((group) => [group.id, group.label]));
  const nodes = picture.nodes.map((node) => {
    const own = { name: node.id, label: node.label, group: groups.get(node.group), mark: node.mark, text: node.text, use: node.use, level: node.level };
    const facts = Object.entries(node.facts).map(([name, value]) => [name in own || name === "id" ? `fact ${name}` : name, value]);
    return { ...own, ...Object.fromEntries(facts) };
  });
  const links = picture.links.map((link) => ({ label: link.label }));
  const keys = { node: listKeys("node", nodes), edge: listKeys("edge", links) };
  const list = (kind, values) => Object.entries(values).map(([name, value]) => `<data key="${keys[kind].get(name).id}">${escapeXml(value)}</data>`).join("");
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...[...keys.node.values(), ...keys.edge.values()].map((key) => key.text),
    `<graph id="${escapeXml(picture.kind)}" edgedefault="${picture.kind === "graph" ? "undirected" : "directed"}">`,
    ...picture.nodes.map((node, place) => `<node id="n${place}">${list("node", nodes[place])}</node>`),
    ...picture.links.map((link, place) => `<edge source="${numbers.get(link.source)}" target="${numbers.get(link.target)}">${list("edge", links[place])}</edge>`),
    "</graph>", "</graphml>", ""].join("\n");
}

/** What GraphML declares of each named value: a number if all of its values are numbers. */
function listKeys(kind, rows) {
  const names = [...new Set(rows.flatMap(Object.keys))];
  return new Map(names.map((name, place) => {
    const isNumber = rows.every((row) => !(name in row) || typeof row[name] === "number");
    const id = `${kind}${place}`;
    return [name, { id, text: `<key id="${id}" for="${kind}" attr.name="${escapeXml(name)}" attr.type="${isNumber ? "double" : "string"}"/>` }];
  }));
}

/** The value as text in XML. Signs that XML cannot hold, such as control characters, become U+FFFD. */
function escapeXml(value) {
  const signs = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
  return String(value).toWellFormed().replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll(/[<>&"]/g, (sign) => signs[sign]).replaceAll("\r", "&#13;");
}

/** Offer a text as a file. */
export function saveFile(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
