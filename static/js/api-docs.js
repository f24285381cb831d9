// Draws the API's reference from its schema; requests made there carry the session's CSRF token.
(() => {
  "use strict";

  // Swagger UI has colours for the dark, and no eye for what the reader or their system wishes.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.documentElement.dataset.theme;
  const paint = () => document.documentElement.classList.toggle("dark-mode", theme ? theme === "dark" : dark.matches);
  paint();
  dark.addEventListener("change", paint);

  const main = document.getElementById("docs");
  window.SwaggerUIBundle({
    url: main.dataset.schema,
    domNode: main,
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      request.headers["X-CSRFToken"] = main.dataset.csrf;
      return request;
    },
  });
})();
