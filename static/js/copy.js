// Copies what a button names: the manifest beside the submit form, a command line of the workload page.
(() => {
  "use strict";

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || !navigator.clipboard) return;
    await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
    const label = [...button.childNodes];
    button.replaceChildren("Copied");
    setTimeout(() => button.replaceChildren(...label), 1500);
  });
})();
