// Folding of the queue tree. What is folded stays folded across refreshes and pages of this tab.
(() => {
  "use strict";

  const KEY = "weir:folded";
  let folded = new Set();
  try {
    folded = new Set(JSON.parse(sessionStorage.getItem(KEY) || "[]"));
  } catch {
    // Storage may be forbidden: then folding lasts as long as the page.
  }

  function isBelow(path, top) {
    return path.startsWith(`${top}/`);
  }

  function apply(tree) {
    tree.querySelectorAll("tr[data-path]").forEach((row) => {
      const path = row.dataset.path;
      row.hidden = [...folded].some((top) => isBelow(path, top));
      const twist = row.querySelector("[data-twist]");
      if (twist) twist.setAttribute("aria-expanded", String(!folded.has(path)));
    });
  }

  function applyAll() {
    document.querySelectorAll("[data-tree]").forEach(apply);
  }

  document.addEventListener("click", (event) => {
    const twist = event.target.closest("[data-twist]");
    if (!twist) return;
    const path = twist.closest("tr").dataset.path;
    if (!folded.delete(path)) folded.add(path);
    try {
      sessionStorage.setItem(KEY, JSON.stringify([...folded]));
    } catch {
      // As above.
    }
    applyAll();
  });

  document.addEventListener("weir:swapped", applyAll);
  applyAll();
})();
