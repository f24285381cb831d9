// Orders GPU classes by arrows. Without it every place is a list to choose from, and the form works all the same.
(() => {
  "use strict";

  const list = document.getElementById("class-order");
  if (!list) return;
  const rows = [...list.querySelectorAll(".choice")];
  const add = list.querySelector("[data-add]");
  const status = list.querySelector("[role=status]");
  let open = 0; // places shown beyond those that are chosen

  const select = (row) => row.querySelector("select");
  const chosen = () => rows.map((row) => select(row).value).filter(Boolean);

  // Chosen classes stand first, without a gap; what may be chosen at a place is what no other place has.
  function write(names) {
    rows.forEach((row, at) => {
      const field = select(row);
      field.value = names[at] ?? "";
      for (const option of field.options) {
        option.hidden = option.disabled = option.value !== field.value && names.includes(option.value);
      }
    });
    draw(names);
  }

  function draw(names) {
    rows.forEach((row, at) => {
      const name = names[at] ?? "";
      row.hidden = at >= Math.max(1, names.length) + open;
      row.querySelector(".swatch").className = `swatch ${select(row).selectedOptions[0]?.dataset.swatch ?? ""}`;
      for (const button of row.querySelectorAll("button")) {
        button.hidden = !name;
        button.setAttribute("aria-label", `${button.querySelector(".sr-only").textContent} ${name}`);
      }
      row.querySelector("[data-move='-1']").disabled = at === 0;
      row.querySelector("[data-move='1']").disabled = at >= names.length - 1;
      row.querySelector("[data-drop]").disabled = names.length < 2;
    });
    add.hidden = names.length === 0 || names.length + open >= rows.length || open > 0;
  }

  function edited(names, said) {
    write(names);
    status.textContent = said;
    list.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function move(at, by) {
    const names = chosen();
    const [name] = names.splice(at, 1);
    names.splice(at + by, 0, name);
    edited(names, `${name} is ${at + by + 1} of ${names.length}`);
    const row = rows[at + by];
    const arrow = row.querySelector(`[data-move='${by}']`);
    (arrow.disabled ? row.querySelector(`[data-move='${-by}']`) : arrow).focus();
  }

  function drop(at) {
    const names = chosen();
    const [name] = names.splice(at, 1);
    edited(names, `${name} is left out`);
    select(rows[Math.min(at, names.length - 1)]).focus();
  }

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button === add) {
      open = 1;
      draw(chosen());
      select(rows[chosen().length]).focus();
      return;
    }
    const at = rows.indexOf(button.closest(".choice"));
    if ("drop" in button.dataset) drop(at);
    else move(at, Number(button.dataset.move));
  });
  list.addEventListener("change", (event) => {
    if (event.target === list) return;
    open = 0;
    write(chosen());
  });

  // A class that is chosen twice stays as it was sent: the fault beside it speaks of it.
  const begin = () => (new Set(chosen()).size === chosen().length ? write : draw)(chosen());
  window.addEventListener("pageshow", begin);
  begin();
})();
