// Draws the API's reference from its schema; requests made there carry the session's CSRF token.
(() => {
  "use strict";

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
