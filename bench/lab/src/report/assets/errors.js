// Counts all errors in the page in data-errors of the root, where a test can see them.
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
