// On a narrow screen each row of a table is a card of several lines: a long table shows its first few, and all
// of them when asked. What was opened stays open when the page is kept up to date.
(() => {
  "use strict";

  const FEW = 3;
  const opened = new Set();

  function nameOf(table) {
    const place = table.closest("[id]");
    const beside = place ? [...place.querySelectorAll(".cards-narrow")] : [];
    return `${place ? place.id : ""}/${beside.indexOf(table)}`;
  }

  // Rows that somebody types in are all shown: a hidden one would be sent unseen.
  function isForm(table) {
    const typed = "tbody input:not([type=hidden], [type=checkbox]), tbody select, tbody textarea";
    return Boolean(table.querySelector(typed));
  }

  function fold(table) {
    table.dataset.folds = "";
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.matches(".total"));
    if (rows.length <= FEW + 2 || isForm(table)) return;
    const name = nameOf(table);
    if (opened.has(name)) return;
    rows.slice(FEW).forEach((row) => row.setAttribute("data-beyond", ""));
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button more-rows";
    button.textContent = `All ${rows.length}`;
    button.addEventListener("click", () => {
      opened.add(name);
      rows.forEach((row) => row.removeAttribute("data-beyond"));
      const next = rows[FEW].querySelector("a, button");
      button.remove();
      if (next) next.focus({ preventScroll: true });
    });
    table.after(button);
  }

  function foldAll(part) {
    part.querySelectorAll(".cards-narrow:not([data-folds])").forEach(fold);
  }

  foldAll(document);
  document.addEventListener("weir:came", (event) => foldAll(event.detail));
  document.addEventListener("htmx:afterSettle", () => foldAll(document));
})();
