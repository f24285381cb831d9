// The quota grid while somebody types: sums, conflicts, what is edited. Presentation only, the server
// checks everything again; without this file the form works as it stands.
(() => {
  "use strict";

  const MILLI = 1000;
  const UNLIMITED = new Set(["", "all", "unlimited", "none", "no limit", "∞"]);
  const LIMITS = new Set(["borrowing_limit", "lending_limit", "budget_gpu_hours"]);

  const table = document.querySelector("[data-grid]");
  const form = document.getElementById("quotas-form");
  if (!table || !form) return;

  const inputs = [...table.querySelectorAll("input")];
  const rows = [...table.querySelectorAll("tr[data-queue]")];
  const faultsBox = document.querySelector("[data-faults]");
  const faultTemplate = document.querySelector("[data-fault-template]");
  const save = document.querySelector("[data-save]");
  const why = document.querySelector("[data-why]");
  const reason = document.getElementById("reason");

  // Faults that only the server knows (sums in the future, stale edits) stay until the grid is touched.
  let serverFaults = faultsBox.hidden ? 0 : faultsBox.children.length;
  // Of them the one that somebody else saved meanwhile: this page shows what they saved, so it may be saved.
  const overtaken = "stale" in faultsBox.dataset;

  const classOf = (input) => input.closest("td").dataset.class;
  const rowOf = (input) => input.closest("tr");
  const plain = (text) => text.trim().toLowerCase().replace("−", "-");

  function faultOf(input) {
    const text = plain(input.value);
    const limit = LIMITS.has(input.dataset.field);
    if (UNLIMITED.has(text) && limit) return null;
    if (text === "") return "a number is missing. Write 0 if there is nothing to give.";
    if (!/^[-+]?\d{1,12}(\.\d{1,9})?$/.test(text)) {
      return `“${input.value.trim().slice(0, 20)}” is not a figure. Write one such as 8 or 0.5${limit ? ", or all for no limit" : ""}.`;
    }
    if (Number(text) < 0) return `${text} is below zero. Write 0 or more${limit ? ", or all for no limit" : ""}.`;
    return null;
  }

  function sameFigure(input) {
    const [now, was] = [plain(input.value), plain(input.dataset.was)];
    if (now === was) return true;
    const limit = LIMITS.has(input.dataset.field);
    if (limit && UNLIMITED.has(now) && UNLIMITED.has(was)) return true;
    return now !== "" && was !== "" && Number(now) === Number(was);
  }

  function nominalInput(row, gpuClass) {
    return row.querySelector(`td[data-class="${gpuClass}"] input[data-field="nominal"]`);
  }

  function milli(input) {
    const value = Number(plain(input.value));
    return Number.isFinite(value) && input.value.trim() ? Math.round(value * MILLI) : 0;
  }

  function figure(value) {
    return String(Math.round(value) / MILLI);
  }

  function wasMilli(input) {
    return Math.round(Number(plain(input.dataset.was)) * MILLI) || 0;
  }

  // One sum row and class: what the children hold of what the parent was given.
  function sumOf(cell) {
    const parent = rows.find((row) => row.dataset.queue === cell.dataset.sum);
    const own = nominalInput(parent, cell.dataset.class);
    const children = rows
      .filter((row) => row.dataset.parent === cell.dataset.sum)
      .map((row) => ({ name: row.dataset.name, input: nominalInput(row, cell.dataset.class) }));
    const held = children.reduce((sum, child) => sum + milli(child.input), 0);
    const given = own ? milli(own) : Number(cell.dataset.given);
    const before = children.reduce((sum, child) => sum + wasMilli(child.input), 0);
    const worse = held - before - (own ? given - wasMilli(own) : 0);
    const strict = !("loose" in cell.dataset);
    return { cell, parent, own, children, held, given, over: held - given, bad: strict && held > given && worse > 0, strict };
  }

  function showSum(sum) {
    const { cell, held, given, over, strict } = sum;
    cell.querySelector("[data-of]").textContent = `${figure(held)} of ${figure(given)}`;
    const rest = cell.querySelector("[data-rest]");
    rest.replaceChildren();
    cell.classList.toggle("is-error", strict && over > 0);
    if (strict && over > 0) {
      const bold = document.createElement("b");
      bold.textContent = `: ${figure(over)} too many`;
      rest.append(bold);
    } else {
      rest.textContent = over > 0 ? ` given, ${figure(over)} over` : ` given, ${figure(-over)} left`;
    }
  }

  // The cell that asks for most carries the fault; the parent's own when it was lowered.
  function culprit(sum) {
    const raised = sum.children
      .map((child) => ({ ...child, by: milli(child.input) - wasMilli(child.input) }))
      .filter((child) => child.by > 0)
      .sort((a, b) => b.by - a.by);
    return raised.length ? raised[0].input : sum.own || sum.children[0].input;
  }

  function sumSentence(sum, guilty) {
    const name = sum.parent.dataset.name;
    const able = sum.children
      .filter((child) => child.input !== guilty && milli(child.input) >= sum.over)
      .sort((a, b) => milli(b.input) - milli(a.input));
    const lower = able.length ? able[0].name : `the queues of ${name} together`;
    const raise = sum.own
      ? `raise ${name} by ${figure(sum.over)}${from(sum)}`
      : `ask for ${figure(sum.over)} more for ${name}`;
    return `${name} was given ${figure(sum.given)} and its queues would hold ${figure(sum.held)}. ` +
      `Lower ${lower} by ${figure(sum.over)}, or ${raise}.`;
  }

  function from(sum) {
    const givers = rows
      .filter((row) => row.dataset.parent === sum.parent.dataset.parent && row !== sum.parent)
      .filter((row) => milli(nominalInput(row, sum.cell.dataset.class)) > 0)
      .map((row) => row.dataset.name);
    if (!givers.length) return "";
    if (givers.length > 3) return ` from ${givers.slice(0, 2).join(", ")} or ${givers.length - 2} others`;
    const last = givers.pop();
    return ` from ${[givers.join(", "), last].filter(Boolean).join(" or ")}`;
  }

  function plural(count, word) {
    return `${count} ${word}${count === 1 ? "" : "s"}`;
  }

  function mark(input, isWrong) {
    const edited = !sameFigure(input);
    const cell = input.closest("td");
    cell.classList.toggle("is-edited", edited && !isWrong);
    cell.classList.toggle("is-error", isWrong);
    if (isWrong) {
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", "faults");
    } else {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    cell.querySelector(".was").textContent = edited || isWrong ? `was ${input.dataset.was}` : "";
    return edited;
  }

  function showFaults(found) {
    faultsBox.replaceChildren(...found.map(({ input, said }) => {
      const line = faultTemplate.content.cloneNode(true);
      const where = document.createElement("b");
      where.textContent = `${input.getAttribute("aria-label")}: `;
      line.querySelector("[data-text]").append(where, said);
      return line;
    }));
    faultsBox.hidden = found.length === 0;
  }

  // The preview of what is typed: none, being planned, planned, or not to be had. Save waits for it, but not
  // for ever: a cluster that answers slowly keeps nobody from saving, who then sees that they do so blind.
  const PATIENCE_MS = 20000;
  let plan = "none";
  let patience = 0;

  function planIs(state) {
    plan = state;
    clearTimeout(patience);
    if (state === "planning") patience = setTimeout(() => planIs("blind"), PATIENCE_MS);
    const note = document.querySelector("[data-planning]");
    if (note) note.hidden = state !== "planning";
    const panel = document.getElementById("preview");
    if (panel) panel.setAttribute("aria-busy", String(state === "planning"));
    refresh();
  }

  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "preview" && plan !== "none") planIs("planned");
  });
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach((failure) => {
    form.addEventListener(failure, () => { if (plan === "planning") planIs("blind"); });
  });

  function showCounts(edits, errors) {
    document.querySelectorAll("[data-edits]").forEach((one) => { one.textContent = edits ? plural(edits, "edit") : ""; });
    document.querySelectorAll("[data-errors]").forEach((one) => { one.textContent = plural(errors, "error"); });
    document.querySelector("[data-badge=edits]").hidden = edits === 0;
    document.querySelector("[data-badge=errors]").hidden = errors === 0;
    document.querySelector("[data-discard]").hidden = edits === 0;
    const mayRetry = overtaken && serverFaults > 0;
    const obstacle = mayRetry ? "" : errors ? `${plural(errors, "error")} to fix first`
      : !edits ? "No figure is edited yet"
      : !reason.value.trim() ? "Write a reason first"
      : plan === "planning" ? "Save waits for its preview" : "";
    save.querySelector("[data-blind]").textContent = plan === "blind" && edits ? "without its preview" : "";
    why.textContent = mayRetry ? "Read what is in force now, then save again" : obstacle;
    why.classList.toggle("err", errors > 0);
    why.classList.toggle("muted", errors === 0);
    save.disabled = obstacle !== "";
    save.toggleAttribute("data-edited", edits > 0 && errors === 0);
  }

  function refresh() {
    const found = inputs.map((input) => ({ input, said: faultOf(input) })).filter((one) => one.said);
    for (const sum of [...table.querySelectorAll("[data-sum]")].map(sumOf)) {
      showSum(sum);
      if (sum.bad) {
        const guilty = culprit(sum);
        found.push({ input: guilty, said: sumSentence(sum, guilty) });
      }
    }
    const wrong = new Set(found.map((one) => one.input));
    const edits = inputs.filter((input) => {
      const kept = serverFaults && input.getAttribute("aria-invalid") === "true";
      return mark(input, wrong.has(input) || Boolean(kept));
    }).length;
    if (!serverFaults) showFaults(found);
    showCounts(edits, serverFaults || found.length);
    found.forEach(({ input }) => showClass(classOf(input), true));
  }

  // Arrows and Enter walk the grid; left and right only from the ends of the text.
  function neighbour(input, key) {
    const visible = (row) => [...row.querySelectorAll("input")].filter((one) => one.offsetParent);
    const line = visible(rowOf(input));
    const column = line.indexOf(input);
    if (key === "ArrowLeft") return line[column - 1];
    if (key === "ArrowRight") return line[column + 1];
    const lines = rows.map(visible).filter((one) => one.length);
    const next = lines.findIndex((one) => one.includes(input)) + (key === "ArrowUp" ? -1 : 1);
    return lines[next] && lines[next][column];
  }

  function walks(event, input) {
    if (event.key === "ArrowUp" || event.key === "ArrowDown" || event.key === "Enter") return true;
    const whole = input.selectionStart === 0 && input.selectionEnd === input.value.length;
    if (event.key === "ArrowLeft") return whole || input.selectionEnd === 0;
    return event.key === "ArrowRight" && (whole || input.selectionStart === input.value.length);
  }

  table.addEventListener("keydown", (event) => {
    if (event.target.tagName !== "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      event.target.value = event.target.dataset.was;
      event.target.dispatchEvent(new Event("input", { bubbles: true }));
      return;
    }
    if (!walks(event, event.target)) return;
    event.preventDefault(); // Enter must not save a half-done edit
    const next = neighbour(event.target, event.key);
    if (next) { next.focus(); next.select(); }
  });

  table.addEventListener("focusin", (event) => {
    if (event.target.tagName === "INPUT") event.target.select();
  });

  // A block from a spreadsheet, tabs between cells and a line for each row, fills the grid from the focused
  // cell on: cells that are shown, in the order in which they are read. What finds no cell is said, not lost.
  const pasted = document.querySelector("[data-pasted]");

  function block(text) {
    const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
    return lines.map((line) => line.split("\t").map((cell) => cell.trim()));
  }

  function targets(input) {
    const visible = (row) => [...row.querySelectorAll("input")].filter((one) => one.offsetParent);
    const lines = rows.map(visible).filter((one) => one.length);
    const top = lines.findIndex((one) => one.includes(input));
    const left = lines[top].indexOf(input);
    return (row, column) => (lines[top + row] || [])[left + column];
  }

  function fill(input, cells) {
    const at = targets(input);
    const outside = [];
    let filled = 0;
    cells.forEach((line, row) => line.forEach((text, column) => {
      const cell = at(row, column);
      if (!cell) {
        if (text) outside.push(text);
        return;
      }
      if (!text) return;
      cell.value = text;
      filled += 1;
    }));
    pasted.textContent = `Pasted ${plural(filled, "cell")}.` + (outside.length
      ? ` ${plural(outside.length, "cell")} found no place right of or below it: ${outside.slice(0, 12).join(", ")}${outside.length > 12 ? " …" : ""}.` : "");
    pasted.hidden = false;
  }

  table.addEventListener("paste", (event) => {
    if (event.target.tagName !== "INPUT") return;
    const text = (event.clipboardData || window.clipboardData).getData("text");
    if (!/[\t\n]/.test(text.replace(/\r?\n$/, ""))) return; // one figure goes in as typed
    event.preventDefault();
    fill(event.target, block(text));
    touched();
  });

  function touched() {
    serverFaults = 0;
    refresh();
    if (!save.hasAttribute("data-edited")) return planIs("none");
    planIs("planning");
    form.dispatchEvent(new Event("edited")); // its preview is planned anew
  }

  table.addEventListener("input", touched);
  form.addEventListener("input", () => { serverFaults = 0; refresh(); planWhatNobodyPlanned(); });

  // Edits that came with the page, from a file or back from a refused save.
  function planWhatNobodyPlanned() {
    const unplanned = document.querySelector("#preview [data-unplanned]");
    if (plan === "none" && unplanned && save.hasAttribute("data-edited")) touched();
  }

  // GPU classes come and go without a request, so nothing typed is lost.
  const toggles = [...document.querySelectorAll("[data-toggle]")];
  const isShown = (toggle) => toggle.hasAttribute("aria-current");

  function showClass(gpuClass, shown) {
    table.querySelectorAll(`[data-class="${gpuClass}"]`).forEach((cell) => { cell.hidden = !shown; });
    const toggle = toggles.find((one) => one.dataset.toggle === gpuClass);
    if (shown) toggle.setAttribute("aria-current", "true");
    else toggle.removeAttribute("aria-current");
    const query = new URLSearchParams(toggles.filter(isShown).map((one) => ["class", one.dataset.name]));
    history.replaceState(null, "", `?${query}`);
    form.action = `?${query}`;
  }

  toggles.forEach((toggle) => toggle.addEventListener("click", (event) => {
    event.preventDefault();
    if (isShown(toggle) && toggles.filter(isShown).length === 1) return;
    showClass(toggle.dataset.toggle, !isShown(toggle));
  }));

  let leaving = false;
  window.addEventListener("beforeunload", (event) => {
    if (!leaving && inputs.some((input) => !sameFigure(input))) event.preventDefault();
  });
  form.addEventListener("submit", () => { leaving = true; });
  document.querySelector("[data-discard]").addEventListener("click", () => { leaving = true; });

  refresh();
  window.addEventListener("load", planWhatNobodyPlanned); // htmx listens by then
})();
