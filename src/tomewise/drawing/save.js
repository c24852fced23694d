// A drawing as a file: the SVG with the colours that it has on the screen, or the picture as JSON.

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

/** Offer a text as a file. */
export function saveFile(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
