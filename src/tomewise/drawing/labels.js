// Which labels are shown: as many as have room, the more important ones first.

const CELL = 80; // pixels; labels are looked up in a grid of such cells
const WIDTH = 6.7; // pixels of a character, on average

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

/** Half width and height of a label in pixels. */
export function measureLabel(rows) {
  return { w: (Math.max(...rows.map((row) => row.length)) * WIDTH) / 2 + 4, h: rows.length * 15 };
}

/** The ids whose labels fit. `boxes` are {id, x, y, w, h, solid} in pixels, the most important first. */
export function chooseLabels(boxes, obstacles) {
  const grid = new Map();
  const cells = (box) => {
    const found = [];
    for (let x = Math.floor((box.x - box.w) / CELL); x <= Math.floor((box.x + box.w) / CELL); x += 1)
      for (let y = Math.floor(box.y / CELL); y <= Math.floor((box.y + box.h) / CELL); y += 1) found.push(`${x} ${y}`);
    return found;
  };
  const put = (box) => cells(box).forEach((cell) => grid.set(cell, [...(grid.get(cell) ?? []), box]));
  const meets = (a, b) => a.id !== b.id && Math.abs(a.x - b.x) < a.w + b.w && a.y < b.y + b.h && b.y < a.y + a.h;
  obstacles.forEach(put);
  const chosen = new Set();
  for (const box of boxes) {
    if (cells(box).some((cell) => (grid.get(cell) ?? []).some((other) => meets(box, other)))) continue;
    chosen.add(box.id);
    put(box);
  }
  return chosen;
}
