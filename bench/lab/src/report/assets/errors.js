// Counts whatever goes wrong in the page, where a test can see it: data-errors of the root.
"use strict";
(() => {
  const root = document.documentElement;
  const note = (text) => {
    root.dataset.errors = String(Number(root.dataset.errors) + 1);
    root.dataset.error = String(text);
  };
  addEventListener("error", (event) => note(event.message));
  addEventListener("unhandledrejection", (event) => note(event.reason));
  addEventListener("securitypolicyviolation", (event) => note(event.blockedURI));
  const warn = console.error;
  console.error = (...texts) => { note(texts.join(" ")); warn.apply(console, texts); };
})();
