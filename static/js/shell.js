// The frame's own behaviour: menu on narrow screens, search, theme, panels that close.
(() => {
  "use strict";

  const root = document.documentElement;

  function currentTheme() {
    return root.dataset.theme || "";
  }

  function setTheme(theme) {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    // A cookie, so that the server sends the first byte of the next page in the right colours.
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    markTheme();
    document.body.dispatchEvent(new CustomEvent("weir:theme"));
  }

  function markTheme() {
    document.querySelectorAll("[data-theme-switch] button").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.value === currentTheme()));
    });
  }

  function toggleMenu(button, open) {
    document.getElementById("sidebar").classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  }

  function closePanels(except) {
    document.querySelectorAll("details.drop[open]").forEach((panel) => {
      if (panel !== except) panel.open = false;
    });
    document.querySelectorAll(".search-results").forEach((results) => {
      if (!results.parentElement.contains(except)) results.replaceChildren();
    });
  }

  function isTyping(target) {
    return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
  }

  function focusSearch() {
    const field = [...document.querySelectorAll("[data-search]")].find((one) => one.offsetParent);
    if (!field) return false;
    field.focus();
    return true;
  }

  function showKeys() {
    const keys = document.getElementById("keys");
    if (!keys || keys.open) return false;
    keys.showModal();
    return true;
  }

  // What was asked for and did not come is said where it would stand.
  function sayFailed(event) {
    const box = event.target.closest(".search")?.querySelector(".search-results");
    if (!box) return;
    const line = document.createElement("p");
    line.className = "small found-head";
    line.textContent = "The search got no answer. Type on to try again.";
    box.replaceChildren(line);
  }

  document.addEventListener("click", (event) => {
    const theme = event.target.closest("[data-theme-switch] button");
    if (theme) setTheme(theme.value);
    const menu = document.querySelector("[data-menu]");
    if (menu) {
      const pressed = menu.contains(event.target);
      const open = document.getElementById("sidebar").classList.contains("open");
      if (pressed) toggleMenu(menu, !open);
      else if (open && !event.target.closest("#sidebar")) toggleMenu(menu, false);
    }
    closePanels(event.target.closest("details.drop, .search") || null);
  });

  document.addEventListener("focusin", (event) => {
    const search = event.target.closest(".search");
    if (search) closePanels(search);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !isTyping(event.target) && focusSearch()) event.preventDefault();
    if (event.key === "?" && !isTyping(event.target) && showKeys()) event.preventDefault();
    if (event.key === "Escape") {
      const open = document.querySelector("details.drop[open]");
      closePanels(null);
      if (open) open.querySelector("summary").focus();
      const menu = document.querySelector("[data-menu]");
      if (menu && menu.getAttribute("aria-expanded") === "true") {
        toggleMenu(menu, false);
        menu.focus();
      }
    }
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.closest(".search")) {
      const items = [...event.target.closest(".search").querySelectorAll("[data-search], .search-results a")];
      const next = items[items.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    }
  });

  document.addEventListener("htmx:responseError", sayFailed);
  document.addEventListener("htmx:sendError", sayFailed);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-link]");
    if (!button || !navigator.clipboard) return;
    event.preventDefault();
    await navigator.clipboard.writeText(new URL(button.getAttribute("href") || "", location.href).href);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });

  markTheme();
})();
