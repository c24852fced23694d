// Which labels are shown: as many as have room, the more important ones first.

const CELL = 80; // pixels; labels are looked up in a grid of such cells
const FONT = '600 12px Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
let pen = null;

/** The lines of a label: at most `lines` of about `length` characters, cut at words where that is possible. */
export function wrapLabel(text, length, lines) {
  const rows = [""];
  for (const word of text.split(" ")) {
    const joined = rows[rows.length - 1] ? `${rows[rows.length - 1]} ${word}` : word;
    if (joined.length <= length || !rows[rows.length - 1]) rows[rows.length - 1] = joined;
    else rows.push(word);
  }
  const kept = rows.slice(0, lines).map((row) => (row.length > length + 4 ? `${row.slice(0, length)}…` : row));
  if (rows.length > lines && !kept[lines - 1].endsWith("…")) kept[lines - 1] += "…";
  return kept;
}

/** The width of a text in pixels at 12 px. */
export function measureText(text) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  return pen.measureText(text).width;
}

/** Half the width of a label, and its height, in pixels. */
export function measureLabel(rows) {
  return { w: Math.max(...rows.map(measureText)) / 2 + 3, h: rows.length * 14.4 };
}

/** Where labels stand, by id: each beneath its shape, or above it, or nowhere, the most important first.
 * `shapes` and `boxes` are {id, x, y, w, h}: the middle, the upper edge, half the width, the height, in pixels.
 * Labels leave the shapes free that `isFirm` names. */
export function placeLabels(boxes, shapes, isFirm) {
  const grid = new Map();
  const list = (box) => {
    const found = [];
    for (let x = Math.floor((box.x - box.w) / CELL); x <= Math.floor((box.x + box.w) / CELL); x += 1)
      for (let y = Math.floor(box.y / CELL); y <= Math.floor((box.y + box.h) / CELL); y += 1) found.push(x * 65536 + y);
    return found;
  };
  const put = (box) => {
    for (const cell of list(box)) {
      if (grid.has(cell)) grid.get(cell).push(box);
      else grid.set(cell, [box]);
    }
  };
  const meets = (a, b) => a.id !== b.id && Math.abs(a.x - b.x) < a.w + b.w && a.y < b.y + b.h && b.y < a.y + a.h;
  const isFree = (box) => !list(box).some((cell) => grid.get(cell)?.some((other) => meets(box, other)));
  shapes.filter((shape) => isFirm(shape.id)).forEach(put);
  const placed = new Map();
  boxes.forEach((box, place) => {
    const above = { ...box, y: shapes[place].y - box.h - (box.y - shapes[place].y - shapes[place].h) };
    const free = isFree(box) ? box : isFree(above) ? above : null;
    if (!free) return;
    placed.set(box.id, free === box ? "below" : "above");
    put(free);
  });
  return placed;
}
