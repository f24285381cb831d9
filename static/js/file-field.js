// A chosen file goes into the form's own hidden fields, in base64: the form is shown again with every variant
// that is added, and a file input would forget.
(() => {
  "use strict";

  const said = (input, words) => {
    input.closest(".field").querySelector("[data-file-said]").textContent = words;
  };

  document.addEventListener("change", (event) => {
    const input = event.target.closest("[data-file-content]");
    const file = input?.files[0];
    if (!file) return;
    const name = document.querySelector(input.dataset.fileName);
    const content = document.querySelector(input.dataset.fileContent);
    name.value = content.value = "";
    if (file.size > Number(input.dataset.fileMost)) {
      said(input, `${file.name} is too large: pack it, or cut it to ${Math.floor(input.dataset.fileMost / 1024)} KiB.`);
      return;
    }
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      content.value = reader.result.slice(reader.result.indexOf(",") + 1);
      name.value = file.name;
      said(input, `${file.name} is held by this form.`);
    });
    reader.addEventListener("error", () => said(input, `${file.name} cannot be read: choose it again.`));
    reader.readAsDataURL(file);
  });
})();
