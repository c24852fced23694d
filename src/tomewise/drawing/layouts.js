// Where things stand: a function of a picture that gives each node a place. Needs d3 (global) for forces and trees.

const COLUMN = 300; // units between levels of a tree
const ROW = 34; // units between rows
const MOST_ROWS = 60; // a tree opens no further at first

/** Groups what a picture says by node: children, parents and neighbours. */
export function indexPicture(picture) {
  const nodes = new Map(picture.nodes.map((node) => [node.id, node]));
  const neighbours = new Map(picture.nodes.map((node) => [node.id, []]));
  const children = new Map(picture.nodes.map((node) => [node.id, []]));
  const parent = new Map();
  for (const link of picture.links) {
    neighbours.get(link.source).push(link.target);
    neighbours.get(link.target).push(link.source);
    if (!parent.has(link.target) && link.source !== link.target) {
      parent.set(link.target, link.source);
      children.get(link.source).push(link.target);
    }
  }
  const roots = picture.nodes.map((node) => node.id).filter((id) => !parent.has(id));
  return { nodes, neighbours, children, parent, roots };
}

/** The nodes that a tree hides at first: it opens level by level while its rows stay few. */
export function chooseClosed(index) {
  const closed = new Set([...index.children].filter(([, below]) => below.length).map(([id]) => id));
  let open = [...index.roots];
  let rows = open.length;
  while (open.length) {
    const more = open.reduce((sum, id) => sum + Math.max(0, index.children.get(id).length - 1), 0);
    if (rows + more > MOST_ROWS && rows > 1) break;
    rows += more;
    open.forEach((id) => closed.delete(id));
    open = open.flatMap((id) => index.children.get(id));
  }
  return closed;
}

/** Places by node id. `aspect` is width divided by height of the stage. */
export function layOut(picture, index, closed, aspect) {
  if (picture.kind === "tree") return layOutTree(index, closed);
  if (picture.kind === "line") return layOutLine(picture, index);
  return layOutGraph(picture, index, aspect);
}

function layOutGraph(picture, index, aspect) {
  const many = picture.nodes.length > 800;
  const nodes = picture.nodes.map((node) => ({ id: node.id, r: radius(node, index) }));
  const links = picture.links.filter((link) => link.source !== link.target).map((link) => ({ ...link }));
  const degree = (id) => index.neighbours.get(id).length;
  const simulation = d3
    .forceSimulation(nodes)
    .force("link", d3.forceLink(links).id((node) => node.id)
      .distance((link) => 46 + 5 * Math.sqrt(Math.min(degree(link.source.id), degree(link.target.id)))))
    .force("charge", d3.forceManyBody().strength((node) => -170 - 14 * node.r).distanceMax(many ? 400 : 900).theta(many ? 1.2 : 0.9))
    .force("collide", d3.forceCollide((node) => node.r + 9))
    .force("x", d3.forceX().strength(0.045 / Math.max(1, aspect)))
    .force("y", d3.forceY().strength(0.045 * Math.min(2, Math.max(1, aspect))))
    .stop();
  const ticks = many ? 110 : 300;
  simulation.alphaDecay(1 - Math.pow(0.001, 1 / ticks));
  for (let tick = 0; tick < ticks; tick += 1) simulation.tick();
  return new Map(nodes.map((node) => [node.id, { x: node.x, y: node.y }]));
}

function layOutTree(index, closed) {
  const top = { id: null, below: index.roots };
  const below = (node) => (node.id === null ? node.below : closed.has(node.id) ? [] : index.children.get(node.id)).map((id) => ({ id }));
  const root = d3.hierarchy(top, below);
  d3.tree().nodeSize([ROW, COLUMN]).separation((a, b) => (a.parent === b.parent ? 1 : 1.25))(root);
  const places = root.descendants().filter((each) => each.data.id !== null);
  return new Map(places.map((each) => [each.data.id, { x: each.y - COLUMN, y: each.x }]));
}

/** Nodes of the lowest level one beneath the other in their order; a higher one in the middle of its children. */
function layOutLine(picture, index) {
  const least = Math.min(...picture.nodes.map((node) => node.level));
  const most = Math.max(...picture.nodes.map((node) => node.level));
  const places = new Map();
  let row = 0;
  for (const node of picture.nodes.filter((each) => each.level === least)) {
    places.set(node.id, { x: (most - least) * COLUMN, y: row * ROW });
    row += 1;
  }
  for (let level = least + 1; level <= most; level += 1) {
    let last = -ROW;
    for (const node of picture.nodes.filter((each) => each.level === level)) {
      const rows = index.children.get(node.id).map((id) => places.get(id)?.y).filter((y) => y !== undefined);
      last = Math.max(last + ROW, rows.length ? d3.mean(rows) : last + ROW);
      places.set(node.id, { x: (most - level) * COLUMN, y: last });
    }
  }
  return places;
}

/** Half the width of a node's shape: more links, a larger shape. */
export function radius(node, index) {
  if (node.mark) return 9 + Math.min(7, 2.6 * node.mark.length);
  return 4.5 + Math.min(9, 1.1 * Math.sqrt(index.neighbours.get(node.id).length));
}
