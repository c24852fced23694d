// Where things stand: a function of a picture that gives each node a place. Needs d3 (global) for the forces.

const COLUMNS = { wide: 310, narrow: 190 }; // units between levels of a tree
const ROW = 30; // units between rows
const GAP = 8; // units more after the last child
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

/** Places by node id, in a stage of this width and height. */
export function layOut(picture, index, closed, width, height) {
  const column = isNarrow(width) ? COLUMNS.narrow : COLUMNS.wide;
  if (picture.kind === "tree") return layOutTree(index, closed, column);
  if (picture.kind === "line") return layOutLine(picture, index, column);
  return layOutGraph(picture, index, (width || 1) / (height || 1));
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

/** A row for each leaf; a parent stands beside its first child, so that the tree reads from its upper left corner. */
function layOutTree(index, closed, column) {
  const places = new Map();
  let y = 0;
  const visit = (id, depth) => {
    const below = closed.has(id) ? [] : index.children.get(id);
    const place = { x: depth * column, y };
    places.set(id, place);
    below.forEach((child) => visit(child, depth + 1));
    y += below.length ? GAP : ROW;
  };
  index.roots.forEach((id) => visit(id, 0));
  return places;
}

/** Nodes of the lowest level one beneath the other in their order; a higher one in the middle of its children. */
function layOutLine(picture, index, column) {
  const least = Math.min(...picture.nodes.map((node) => node.level));
  const most = Math.max(...picture.nodes.map((node) => node.level));
  const places = new Map();
  let row = 0;
  for (const node of picture.nodes.filter((each) => each.level === least)) {
    places.set(node.id, { x: (most - least) * column, y: row * ROW });
    row += 1;
  }
  for (let level = least + 1; level <= most; level += 1) {
    let last = -ROW;
    for (const node of picture.nodes.filter((each) => each.level === level)) {
      const rows = index.children.get(node.id).map((id) => places.get(id)?.y).filter((y) => y !== undefined);
      last = Math.max(last + ROW, rows.length ? rows.reduce((sum, y) => sum + y, 0) / rows.length : last + ROW);
      places.set(node.id, { x: (most - level) * column, y: last });
    }
  }
  return places;
}

/** Whether a stage has room for short labels only. */
export function isNarrow(width) {
  return width < 600;
}

/** Half the width of a node's shape: more links, a larger shape. */
export function radius(node, index) {
  if (node.mark) return 9 + Math.min(7, 2.6 * node.mark.length);
  return 4.5 + Math.min(9, 1.1 * Math.sqrt(index.neighbours.get(node.id).length));
}
