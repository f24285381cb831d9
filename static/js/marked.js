// Marks all shown workloads with one box, and counts what is marked. Without it the form works all the same.
(() => {
  "use strict";

  const form = document.getElementById("marked");
  if (!form) return;
  const all = document.getElementById("mark-all");
  const count = document.getElementById("marked-count");

  // A row that a narrow screen folds away is not shown, and marked by nobody.
  function boxes() {
    return [...form.elements].filter((field) => field.name === "uid" && field.offsetParent);
  }

  function tell() {
    const shown = boxes();
    const marked = shown.filter((box) => box.checked).length;
    all.checked = shown.length > 0 && marked === shown.length;
    all.indeterminate = marked > 0 && !all.checked;
    count.hidden = false;
    count.textContent = `${marked} of ${shown.length} marked`;
  }

  document.addEventListener("change", (event) => {
    if (event.target === all) boxes().forEach((box) => { box.checked = all.checked; });
    if (event.target === all || event.target.form === form) tell();
  });
  document.addEventListener("weir:swapped", tell);
  window.addEventListener("pageshow", tell);
  tell();
})();
