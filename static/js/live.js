// Keeps a page up to date: the cluster's clock, the stream of plans, and fragments swapped in place.
//
// A fragment is any element with an id and data-live-url. When the cluster has changed it is fetched and
// replaced; <details> that were open stay open, what says data-live-keep stays as it is, and the focus
// stays on the element of the same id or address. One that somebody types in or waits in is left until they
// are done. Pages may instead use hx-trigger="weir:plan from:body".
(() => {
  "use strict";

  const live = document.getElementById("live");
  if (!live) return;

  const POLL_MS = 5000;
  const LEAST_GAP_MS = 1000; // a cluster whose clock runs fast changes faster than anybody reads
  const speed = parseFloat(live.dataset.speed) || 1;
  const staleAfter = parseFloat(live.dataset.staleAfter) * 1000;
  const loaded = performance.now();
  const started = Date.parse(live.dataset.now);
  let revision = live.dataset.revision;
  let plannedAt = live.dataset.state === "live" ? performance.now() : -Infinity;
  let refreshing = false;
  let again = false;
  let lastRefresh = -LEAST_GAP_MS;
  let postponed = 0;

  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: live.dataset.zone, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  });

  function clusterNow() {
    return new Date(started + (performance.now() - loaded) * speed);
  }

  function tick() {
    const time = live.querySelector("time");
    const now = clusterNow();
    time.textContent = format.format(now);
    time.dateTime = now.toISOString();
    time.title = `${now.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    showState();
  }

  function showState() {
    const age = performance.now() - plannedAt;
    const stale = age > staleAfter;
    const word = stale ? "Stale" : "Live";
    const since = stale && isFinite(age) ? `, ${ageText(age)}` : "";
    const state = stale ? "stale" : "live";
    if (live.dataset.state !== state) live.dataset.state = state;
    const shown = live.querySelector(".live-word");
    if (shown.textContent !== word) shown.textContent = word;
    live.querySelector(".live-age").textContent = since;
    showNote(stale, age);
  }

  // The page says itself that it is old, where somebody reads and not only at the dot.
  function showNote(stale, age) {
    const note = document.querySelector("[data-stale-note]");
    if (!note) return;
    note.hidden = !stale;
    const told = note.querySelector("[data-stale-age]");
    if (told && stale && isFinite(age)) told.textContent = ageText(age);
  }

  function ageText(ms) {
    const minutes = Math.floor(ms / 60000);
    return minutes ? `${minutes} min` : `${Math.floor(ms / 1000)} s`;
  }

  function focusKey() {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    if (element.id) return `#${CSS.escape(element.id)}`;
    const href = element.getAttribute("href");
    return href ? `[href="${CSS.escape(href)}"]` : null;
  }

  // Somebody waits for an answer in it, types in it, or has opened something over it.
  function isInUse(element) {
    if (element.querySelector("dialog[open], [popover]:popover-open, [aria-busy='true']")) return true;
    return [...element.querySelectorAll("input:not([type=hidden]), textarea, select")].some(isTouched);
  }

  function isTouched(field) {
    if (field === document.activeElement) return true;
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) return isChosen(field);
    return field.value !== field.defaultValue;
  }

  // Without a default the browser chooses the first.
  function isChosen(select) {
    const options = [...select.options];
    const usual = options.some((option) => option.defaultSelected);
    return usual ? options.some((option) => option.selected !== option.defaultSelected) : select.selectedIndex > 0;
  }

  // A row is the same by its id, and without one by what it is called.
  function keepOpen(element, next) {
    const nameOf = (row) => row.id || row.querySelector("summary")?.textContent;
    const open = new Map([...element.querySelectorAll("details")].map((row) => [nameOf(row), row.open]));
    next.querySelectorAll("details").forEach((row) => {
      if (open.has(nameOf(row))) row.open = open.get(nameOf(row));
    });
  }

  // What is kept moves over itself, with the requests that it waits for; a copy would wait for nothing.
  function keptOf(element, next) {
    return [...element.querySelectorAll("[data-live-keep][id]")].flatMap((kept) => {
      const same = next.querySelector(`#${CSS.escape(kept.id)}`);
      if (!same) return [];
      const place = document.adoptNode(kept.cloneNode(true));
      same.replaceWith(place);
      return [[place, kept]];
    });
  }

  function swap(element, html) {
    const next = new DOMParser().parseFromString(html, "text/html").getElementById(element.id);
    if (!next) return;
    const kept = keptOf(element, next);
    keepOpen(element, next);
    // Others put it as what stands there is put, before the two are compared.
    document.dispatchEvent(new CustomEvent("weir:came", { detail: next }));
    if (next.outerHTML === element.outerHTML) return;
    if (isInUse(element)) {
      later();
      return;
    }
    const focused = document.activeElement;
    const key = element.contains(focused) ? focusKey() : null;
    element.replaceWith(next);
    kept.forEach(([place, node]) => place.replaceWith(node));
    if (window.htmx) window.htmx.process(next);
    const focus = next.contains(focused) ? focused : key && next.querySelector(key);
    if (focus) focus.focus({ preventScroll: true });
    next.dispatchEvent(new CustomEvent("weir:swapped", { bubbles: true }));
  }

  function later() {
    clearTimeout(postponed);
    postponed = setTimeout(refresh, POLL_MS);
  }

  async function refreshFrom(url) {
    const response = await fetch(url, { headers: { "X-Weir-Live": "1" }, credentials: "same-origin" });
    if (!response.ok || response.redirected) return;
    const html = await response.text();
    document.querySelectorAll("[data-live-url]").forEach((element) => {
      if (element.id && new URL(element.dataset.liveUrl, location.href).href === url) swap(element, html);
    });
  }

  // One request an address whatever the number of fragments, one at a time, and none in a hidden tab.
  async function refresh() {
    if (document.hidden || refreshing) {
      again = true;
      return;
    }
    refreshing = true;
    await soon(Math.max(0, lastRefresh + LEAST_GAP_MS - performance.now()));
    lastRefresh = performance.now();
    again = false;
    const urls = new Set([...document.querySelectorAll("[data-live-url]")].map(
      (element) => new URL(element.dataset.liveUrl, location.href).href));
    try {
      for (const url of urls) await refreshFrom(url);
    } catch {
      // The next event tries again; the dot says stale meanwhile.
    } finally {
      refreshing = false;
    }
    document.body.dispatchEvent(new CustomEvent("weir:plan", { detail: { revision } }));
    if (again && !document.hidden) refresh();
  }

  function soon(gap) {
    return new Promise((resolve) => { setTimeout(resolve, gap); });
  }

  function onState(state) {
    if (state.planned_age_s !== null) plannedAt = performance.now() - state.planned_age_s * 1000;
    const cycle = document.getElementById("cycle");
    if (cycle && state.cycle && cycle.textContent !== state.cycle) cycle.textContent = state.cycle;
    if (String(state.revision) !== String(revision)) {
      revision = state.revision;
      refresh();
    }
    showState();
  }

  let stream = null;
  let polling = null;

  function poll() {
    if (document.hidden) return;
    fetch(`${live.dataset.liveStream}?once=1`, { credentials: "same-origin" })
      .then((response) => (response.ok ? response.json() : null))
      .then((state) => state && onState(state))
      .catch(() => {});
  }

  function connect() {
    if (!live.dataset.liveStream || stream) return;
    if (!window.EventSource) {
      polling = polling || setInterval(poll, POLL_MS);
      return;
    }
    stream = new EventSource(live.dataset.liveStream);
    stream.addEventListener("plan", (event) => onState(JSON.parse(event.data)));
    stream.addEventListener("open", () => { clearInterval(polling); polling = null; });
    stream.addEventListener("error", () => {
      if (!polling) polling = setInterval(poll, POLL_MS);
      if (stream && stream.readyState === EventSource.CLOSED) {
        stream = null;
        setTimeout(connect, POLL_MS);
      }
    });
  }

  // A hidden tab gives its connection back, so that many tabs cost nothing and never use up the six
  // connections a browser keeps to one host.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      if (stream) stream.close();
      stream = null;
      clearInterval(polling);
      polling = null;
      return;
    }
    poll();
    connect();
    if (again) refresh();
  });
  window.addEventListener("pagehide", () => { if (stream) stream.close(); stream = null; });
  window.addEventListener("pageshow", (event) => { if (event.persisted) { poll(); connect(); } });

  setInterval(tick, 1000);
  tick();
  if (!document.hidden) connect();
})();
