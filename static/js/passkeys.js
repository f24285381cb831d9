// Passkeys: the browser asks for one, and the form goes with what it gave.
"use strict";

(() => {
  const NO_SUPPORT = "This browser knows no passkeys. Use another one, or another way in.";
  const BROKEN_OFF = "No passkey was used. Try again.";

  /** What the server asks of the browser: on the page, or, where nobody is known yet, by a question of its own. */
  async function options(form) {
    const kept = document.getElementById("passkey-options");
    if (kept) return JSON.parse(kept.textContent);
    const answer = await fetch(form.action, { headers: { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" } });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  }

  /** A passkey is found without a name and unlocked by its owner. */
  function added(asked) {
    asked.authenticatorSelection = {
      ...asked.authenticatorSelection,
      residentKey: "required",
      requireResidentKey: true,
      userVerification: "required",
    };
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked) });
  }

  function shown(asked) {
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked) });
  }

  async function credential(form) {
    const given = await options(form);
    const key = form.dataset.passkey === "add"
      ? await added(given.creation_options.publicKey)
      : await shown(given.request_options.publicKey);
    return JSON.stringify(key.toJSON());
  }

  function tell(form, sentence) {
    const place = form.querySelector("[data-passkey-fault]");
    place.textContent = sentence;
    place.hidden = false;
  }

  async function send(event) {
    const form = event.currentTarget;
    event.preventDefault();
    if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
      tell(form, NO_SUPPORT);
      return;
    }
    try {
      form.elements.credential.value = await credential(form);
    } catch {
      tell(form, BROKEN_OFF);
      return;
    }
    form.submit();
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) form.addEventListener("submit", send);
})();
