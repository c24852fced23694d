// The drawing itself: SVG that can be moved, zoomed and walked through by keyboard. Needs d3 (global).
import { isNarrow, layOut, radius } from "./layouts.js";
import { measureLabel, measureText, placeLabels, wrapLabel } from "./labels.js";

const MOST_LIT = 16; // of so many neighbours all labels are shown, even if they overlap
const NEAR = 8; // pixels from a link within which the pointer means it
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** A drawing in `stage`. `hooks.open(id)` is called for a chosen node; `closed` are folded nodes of a tree. */
export class Canvas {
  constructor(stage, picture, index, closed, hooks) {
    Object.assign(this, { stage, picture, index, closed, hooks });
    this.isRows = picture.kind !== "graph";
    this.svg = d3.select(stage).append("svg").attr("role", "group").classed("tp-rows", this.isRows)
      .attr("aria-label", `${picture.title}: tab goes from node to node, arrows to the nearest one, Enter opens details`);
    this.scene = this.svg.append("g").attr("class", "tp-scene");
    this.zoom = d3.zoom().scaleExtent([0.05, 6])
      .filter((event) => !event.ctrlKey && !event.button && (event.type !== "wheel" || !this.isRows || event.altKey || event.metaKey))
      .on("zoom", (event) => this.follow(event.transform)).on("end", () => this.label());
    this.svg.call(this.zoom).on("dblclick.zoom", null);
    this.transform = d3.zoomIdentity;
    this.isVisible = () => true;
    if (this.isRows) this.svg.on("wheel.rows", (event) => this.scroll(event), { passive: false });
    this.svg.on("click", (event) => event.target === this.svg.node() && hooks.open(null));
    if (!this.isRows) this.svg.on("pointermove.words", (event) => this.point(event)).on("pointerleave.words", () => this.say([]));
    this.seen = new Set(picture.nodes.filter((node) => node.use === "shown").map((node) => node.group));
    this.draw();
    this.fit();
  }

  /** Rows are read from top to bottom, so the wheel moves them; with Alt it zooms. */
  scroll(event) {
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    this.svg.call(this.zoom.translateBy, -event.deltaX / this.transform.k, -event.deltaY / this.transform.k);
  }

  draw() {
    const box = this.stage.getBoundingClientRect();
    this.narrow = isNarrow(box.width);
    this.places = layOut(this.picture, this.index, this.closed, box.width, box.height);
    const nodes = this.picture.nodes.filter((node) => this.places.has(node.id) && this.isVisible(node));
    const ids = new Set(nodes.map((node) => node.id));
    const links = this.picture.links.filter((link) => ids.has(link.source) && ids.has(link.target) && link.source !== link.target);
    this.ranked = [...nodes].sort((a, b) => this.weigh(b) - this.weigh(a));
    this.scene.selectAll("*").remove();
    this.links = this.scene.append("g").selectAll("path").data(links).join("path")
      .attr("class", "tp-link").attr("d", (link) => this.trace(link))
      .attr("data-use", (link) => this.isUsed(link) ? "cited" : null)
      .attr("data-further", (link) => this.picture.kind === "tree" && this.index.parent.get(link.target) !== link.source ? "" : null);
    this.nodes = this.scene.append("g").selectAll("g").data(nodes, (node) => node.id).join("g")
      .attr("class", "tp-node").attr("tabindex", 0).attr("role", "button")
      .attr("data-group", (node) => this.picture.groups.findIndex((group) => group.id === node.group) % 6)
      .attr("data-use", (node) => node.use || null)
      .attr("data-unseen", (node) => (!node.use && this.seen.has(node.group) ? "" : null))
      .attr("aria-label", (node) => this.describe(node))
      .attr("transform", (node) => `translate(${this.places.get(node.id).x},${this.places.get(node.id).y})`)
      .on("click", (event, node) => this.hooks.open(node.id))
      .on("focus", (event, node) => { this.light(node.id); this.reveal(node.id); })
      .on("blur", () => this.light(null))
      .on("pointerenter", (event, node) => this.light(node.id))
      .on("pointerleave", () => this.light(null))
      .on("keydown", (event, node) => this.press(event, node));
    this.nodes.append((node) => this.makeShape(node));
    this.nodes.filter((node) => node.mark).append("text").attr("class", "tp-mark").attr("dy", "0.35em").text((node) => node.mark);
    this.nodes.filter((node) => this.picture.kind === "tree" && this.index.children.get(node.id).length).each((node, place, all) => this.addFold(node, all[place]));
    this.texts = this.nodes.append("g").attr("class", "tp-label").each((node, place, all) => this.addLabel(node, all[place]));
    this.words = this.scene.append("g").attr("class", "tp-words");
    this.select(this.selected ?? null);
  }

  /** Write what links say beside them, as far as they say something. */
  say(links) {
    const scale = 1 / this.transform.k;
    const said = links.filter((link) => link.label);
    this.words.selectAll("text").data(said).join("text").text((link) => wrapLabel(link.label, 40, 1)[0]).attr("text-anchor", "middle")
      .attr("transform", (link) => {
        const [a, b] = [this.places.get(link.source), this.places.get(link.target)];
        return `translate(${(a.x + b.x) / 2},${(a.y + b.y) / 2}) scale(${scale}) translate(0,-3)`;
      });
  }

  /** Say what the link under the pointer means. */
  point(event) {
    if (event.target.closest?.(".tp-node")) return; // that one says its own
    const [x, y] = this.transform.invert(d3.pointer(event, this.svg.node()));
    let best = null;
    let least = NEAR / this.transform.k;
    for (const link of this.links.data()) {
      const [a, b] = [this.places.get(link.source), this.places.get(link.target)];
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const along = Math.max(0, Math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / (dx * dx + dy * dy || 1)));
      const far = Math.hypot(x - a.x - along * dx, y - a.y - along * dy);
      if (far < least) [best, least] = [link, far];
    }
    this.links.classed("tp-at", (link) => link === best);
    this.say(best ? [best] : []);
  }

  weigh(node) {
    return (node.use === "cited" ? 1e7 : 0) + (node.mark ? 1e6 : 0) + (node.use ? 1e4 : 0) + this.index.neighbours.get(node.id).length;
  }

  isUsed(link) {
    return [link.source, link.target].every((id) => this.index.nodes.get(id).use === "cited");
  }

  describe(node) {
    const group = this.picture.groups.find((each) => each.id === node.group);
    const use = node.use ? `, ${node.use === "cited" ? "cited" : "seen"} by the answer` : "";
    return `${group.label}: ${node.mark ? `${node.mark} ` : ""}${node.label}${use}`;
  }

  /** Half the width of its shape. */
  measure(node) {
    if (this.isRows) return node.mark ? 11 : 5.5;
    return radius(node, this.index);
  }

  /** The label in a row: short where children stand to the right of it. */
  cutLabel(node) {
    const hasNext = this.index.children.get(node.id).length;
    return wrapLabel(node.label, hasNext ? (this.narrow ? 15 : 30) : this.narrow ? 34 : 60, 1)[0];
  }

  makeShape(node) {
    const shape = this.picture.groups.find((group) => group.id === node.group).shape;
    const r = this.measure(node);
    const element = document.createElementNS("http://www.w3.org/2000/svg", shape === "circle" ? "circle" : "rect");
    const values = shape === "circle" ? { r } : { x: -r, y: -r * 0.8, width: 2 * r, height: 1.6 * r, rx: 0.4 * r };
    if (shape === "diamond") Object.assign(values, { x: -r * 0.8, width: 1.6 * r, rx: 1, transform: "rotate(45)" });
    for (const [name, value] of Object.entries({ class: "tp-shape", ...values })) element.setAttribute(name, value);
    return element;
  }

  addLabel(node, group) {
    const r = this.measure(node);
    const rows = this.isRows ? [this.cutLabel(node)] : wrapLabel(node.label, node.mark ? 26 : 22, 2);
    const text = d3.select(group).append("text").attr("text-anchor", this.isRows ? "start" : "middle");
    text.selectAll("tspan").data(rows).join("tspan").attr("x", 0).attr("dy", (row, place) => (place ? "1.2em" : 0)).text((row) => row);
    Object.assign(group, { r, size: measureLabel(rows) });
  }

  addFold(node, group) {
    const isClosed = this.closed.has(node.id);
    const fold = d3.select(group).insert("g", ":first-child").attr("class", "tp-fold").attr("transform", `translate(${-this.measure(node) - 9},0)`)
      .on("click", (event) => { event.stopPropagation(); this.toggle(node.id); });
    fold.append("rect").attr("x", -9).attr("y", -12).attr("width", 18).attr("height", 24).attr("class", "tp-hit");
    fold.append("path").attr("d", isClosed ? "M-2,-4L3,0L-2,4" : "M-4,-2L0,3L4,-2");
    d3.select(group).attr("aria-expanded", String(!isClosed));
  }

  toggle(id) {
    if (!this.index.children.get(id).length) return;
    const before = this.places.get(id);
    this.closed.delete(id) || this.closed.add(id);
    this.draw();
    const after = this.places.get(id);
    this.svg.call(this.zoom.translateBy, before.x - after.x, before.y - after.y);
    this.focus(id);
    this.label();
  }

  trace(link) {
    const a = this.places.get(link.source);
    const b = this.places.get(link.target);
    if (!this.isRows) return `M${a.x},${a.y}L${b.x},${b.y}`;
    const node = this.index.nodes.get(link.source);
    const start = a.x + this.measure(node) + 15 + (measureText(this.cutLabel(node)) * 13) / 12;
    const end = b.x - this.measure(this.index.nodes.get(link.target)) - (this.picture.kind === "tree" ? 17 : 6);
    if (a.x >= b.x) return `M${a.x},${a.y}L${b.x},${b.y}`;
    const turn = Math.max(Math.min(start, end - 6), end - 40);
    const middle = (turn + end) / 2;
    return a.y === b.y ? `M${start},${a.y}H${end}` : `M${Math.min(start, turn)},${a.y}H${turn}C${middle},${a.y} ${middle},${b.y} ${end},${b.y}`;
  }

  follow(transform) {
    const zoomed = transform.k !== this.transform.k;
    this.transform = transform;
    this.scene.attr("transform", transform);
    if (zoomed) this.label();
  }

  /** Show the labels that have room at this size. They keep their size on the screen while a graph is zoomed. */
  label() {
    const { k } = this.transform;
    if (this.isRows) {
      this.texts.attr("transform", (node, place, all) => `translate(${all[place].r + 7},4.5)`);
      return;
    }
    const scale = Math.max(0.92 / k, 0.5); // so that small drawings have few labels, and no tiny ones
    const groups = new Map(this.texts.nodes().map((group) => [d3.select(group).datum().id, group]));
    const shapes = this.ranked.map((node) => {
      const { r } = groups.get(node.id);
      const place = this.places.get(node.id);
      return { id: node.id, x: place.x * k, y: (place.y - r) * k, w: r * k, h: 2 * r * k };
    });
    const boxes = shapes.map((shape) => {
      const { size } = groups.get(shape.id);
      return { ...shape, y: shape.y + shape.h + 4, w: size.w * scale * k, h: size.h * scale * k };
    });
    const isFar = k < 0.55;
    const marked = new Set(this.ranked.filter((node) => node.mark || !isFar).map((node) => node.id));
    const placed = placeLabels(boxes, shapes, (id) => marked.has(id)); // from afar a label may cover a dot
    this.svg.classed("tp-far", isFar);
    this.texts.classed("tp-hidden", (node) => !placed.has(node.id)).attr("transform", (node, place, all) => {
      const { r, size } = all[place];
      const isAbove = placed.get(node.id) === "above";
      const y = isAbove ? -r - 4 / k - (size.h - 11) * scale : r + 4 / k + 11 * scale;
      return `translate(0,${y}) scale(${scale})`;
    });
  }

  fit() {
    const box = this.stage.getBoundingClientRect();
    const places = [...this.places].filter(([id]) => this.isVisible(this.index.nodes.get(id))).map(([, place]) => place);
    if (!places.length || !box.width) return;
    const [left, right] = findExtent(places.map((place) => place.x));
    const [top, bottom] = findExtent(places.map((place) => place.y));
    const side = this.isRows ? { left: 40, right: this.narrow ? 120 : 300 } : { left: this.narrow ? 40 : 100, right: this.narrow ? 40 : 100 };
    const wide = box.width / (right - left + side.left + side.right);
    const high = box.height / (bottom - top + 170);
    const k = this.isRows ? Math.min(1, Math.max(0.9, wide)) : Math.min(1.5, wide, high);
    const rows = (bottom - top + 60) * k > box.height ? 34 : Math.max(34, Math.min(80, box.height / 2 - ((bottom - top) / 2) * k));
    const target = this.isRows
      ? d3.zoomIdentity.translate(side.left * k - left * k, rows - top * k).scale(k)
      : d3.zoomIdentity.translate(box.width / 2 - ((left + right) / 2) * k, box.height / 2 - ((top + bottom) / 2) * k).scale(k);
    this.svg.call(this.zoom.transform, target);
    this.label();
  }

  change(factor) {
    this.svg.call(this.zoom.scaleBy, factor);
  }

  /** Bring out a node and its neighbours; the others step back. */
  light(id) {
    const near = id === null ? null : new Set([id, ...this.index.neighbours.get(id)]);
    this.svg.classed("tp-lit", near !== null).classed("tp-few", near !== null && near.size <= MOST_LIT);
    this.nodes.classed("tp-near", (node) => near?.has(node.id)).classed("tp-at", (node) => node.id === id);
    const isNear = (link) => link.source === id || link.target === id;
    this.links.classed("tp-near", isNear).classed("tp-at", false);
    if (!this.isRows) this.say(near !== null && near.size <= MOST_LIT ? this.links.data().filter(isNear) : []);
  }

  select(id) {
    this.selected = id;
    this.nodes.classed("tp-selected", (node) => node.id === id);
  }

  show(isVisible) {
    this.isVisible = isVisible;
    this.draw();
    this.label();
  }

  focus(id) {
    this.nodes.filter((node) => node.id === id).node()?.focus({ preventScroll: true });
  }

  /** Move the drawing so that a node is in sight. */
  reveal(id) {
    const box = this.stage.getBoundingClientRect();
    const [x, y] = this.transform.apply([this.places.get(id).x, this.places.get(id).y]);
    const edge = 40;
    const right = this.isRows ? Math.min(200, box.width / 2) : edge;
    const dx = x < edge ? edge - x : x > box.width - right ? box.width - right - x : 0;
    const dy = y < edge ? edge - y : y > box.height - edge ? box.height - edge - y : 0;
    if (dx || dy) this.svg.call(this.zoom.translateBy, dx / this.transform.k, dy / this.transform.k);
  }

  press(event, node) {
    if (event.key in ARROWS) this.step(node.id, ...ARROWS[event.key]);
    else if (event.key === "Enter") this.hooks.open(node.id);
    else if (event.key === " ") this.picture.kind === "tree" ? this.toggle(node.id) : this.hooks.open(node.id);
    else if (event.key === "+" || event.key === "=") this.change(1.3);
    else if (event.key === "-") this.change(1 / 1.3);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** Go to the nearest node in a direction; one that lies straight ahead counts as nearer. */
  step(id, dx, dy) {
    const from = this.places.get(id);
    let best = null;
    let least = Infinity;
    for (const node of this.nodes.data()) {
      const place = this.places.get(node.id);
      const ahead = (place.x - from.x) * dx + (place.y - from.y) * dy;
      const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx);
      if (node.id === id || ahead <= 0 || (aside > 2 * ahead && !this.isRows)) continue;
      const far = ahead + 2 * aside;
      if (far < least) [best, least] = [node.id, far];
    }
    if (best !== null) this.focus(best);
  }
}

/** The least and the greatest of these numbers. */
function findExtent(numbers) {
  return numbers.reduce(([least, most], number) => [Math.min(least, number), Math.max(most, number)], [Infinity, -Infinity]);
}
