// What readers with a keyboard or a screen reader need and the theme leaves out: parts that scroll take the focus,
// and landmarks of the same name get numbers. The theme adds elements after it has loaded, so this looks again then.
const mend = () => {
  for (const part of document.querySelectorAll(".drawing, .md-typeset__scrollwrap, pre > code")) {
    const scrolls = part.scrollWidth > part.clientWidth;
    if (scrolls && part.tabIndex < 0) part.tabIndex = 0;
  }
  const seen = new Map();
  for (const nav of document.querySelectorAll("nav")) {
    const label = document.getElementById(nav.getAttribute("aria-labelledby") ?? "");
    const name = nav.dataset.name ?? (nav.getAttribute("aria-label") || label?.textContent.trim() || "Copy");
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    const wanted = count > 1 ? `${name}, ${count}` : name;
    if (nav.dataset.name === undefined || nav.getAttribute("aria-label") !== wanted) {
      nav.dataset.name = name;
      nav.removeAttribute("aria-labelledby");
      nav.setAttribute("aria-label", wanted);
    }
  }
};

let waiting = false;
new MutationObserver(() => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    mend();
  });
}).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mend);
mend();
