// On a narrow screen each row of a table is a card of several lines: a long table or list shows its first few,
// and all of them when asked. Of a page that is long all the same the cards further down show their heads alone. What
// was opened stays open when the page is kept up to date.
(() => {
  "use strict";

  const FEW = 3;
  const FOLDS = ".cards-narrow, .folds-narrow";
  const opened = new Set();

  function nameOf(table) {
    const place = table.closest("[id]");
    const beside = place ? [...place.querySelectorAll(FOLDS)] : [];
    return `${place ? place.id : ""}/${beside.indexOf(table)}`;
  }

  // Rows that somebody types in are all shown: a hidden one would be sent unseen.
  function isForm(table) {
    const typed = "tbody input:not([type=hidden], [type=checkbox]), tbody select, tbody textarea";
    return Boolean(table.querySelector(typed));
  }

  function rowsOf(list) {
    if (!list.tBodies) return [...list.children];
    return [...list.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.matches(".total"));
  }

  function fold(table) {
    table.dataset.folds = "";
    const rows = rowsOf(table);
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
    [...part.querySelectorAll(FOLDS)].filter((list) => !list.hasAttribute("data-folds")).forEach(fold);
  }

  const LONG_PX = 3000;
  const LATE_PX = 1500;
  const HIGH_PX = 260;
  const narrow = window.matchMedia("(max-width: 720px)");
  const later = new Set();

  function content() {
    return document.getElementById("content");
  }

  function keyOf(card) {
    const head = card.querySelector(":scope > .card-head h2");
    return head ? head.id || head.textContent : "";
  }

  // What says what is wrong, and what saves, is never folded.
  function mayFold(card) {
    return keyOf(card) && !card.matches(":target") &&
      !card.querySelector("[role=alert], [aria-invalid=true], .button-primary, :target");
  }

  function foldCard(card) {
    card.setAttribute("data-folded", "");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button unfold";
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-label", `Show: ${card.querySelector("h2").textContent.trim()}`);
    button.textContent = "Show";
    button.addEventListener("click", () => {
      later.delete(keyOf(card));
      card.removeAttribute("data-folded");
      button.remove();
      // Charts are drawn to the width that they have.
      window.dispatchEvent(new Event("resize"));
    });
    card.querySelector(":scope > .card-head").append(button);
  }

  function isLate(card) {
    const box = card.getBoundingClientRect();
    return box.top + window.scrollY > LATE_PX && box.height > HIGH_PX;
  }

  const CARD = "section.card:not([data-folded])";

  // Also of a part that comes and does not stand in the page yet.
  function foldCards(part) {
    const cards = [...part.querySelectorAll(CARD)].concat(part.matches(CARD) ? part : []).filter(mayFold);
    cards.filter((card) => later.has(keyOf(card))).forEach(foldCard);
  }

  function isLong() {
    return document.documentElement.scrollHeight > LONG_PX;
  }

  function foldLatest() {
    if (!narrow.matches || !isLong()) return;
    const cards = [...document.querySelectorAll("#content section.card")].filter(mayFold)
      .filter((card) => !card.parentElement.closest("section.card"));
    cards.filter(isLate).forEach((card) => later.add(keyOf(card)));
    foldCards(content());
    foldHighest(cards.slice(1));
  }

  // Where those further down are not enough: the highest of the rest.
  function foldHighest(cards) {
    const height = (card) => card.getBoundingClientRect().height;
    const open = cards.filter((card) => !card.hasAttribute("data-folded") && height(card) > HIGH_PX);
    open.sort((one, other) => height(other) - height(one));
    while (open.length && isLong()) {
      later.add(keyOf(open.shift()));
      foldCards(content());
    }
  }

  function foldWhatCame(part) {
    foldAll(part);
    if (later.size) foldCards(part);
  }

  foldAll(document);
  window.addEventListener("load", foldLatest);
  document.addEventListener("weir:came", (event) => foldWhatCame(event.detail));
  document.addEventListener("htmx:afterSettle", () => foldWhatCame(content()));
})();
