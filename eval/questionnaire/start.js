"use strict";
// The way to a form: ?lang=en chooses the language, ?form=2 the form, which is drawn by chance otherwise, and the same
// again for who comes back in the same browser.
const { forms, digest } = JSON.parse(document.getElementById("start").textContent);
const drawnBefore = `pairscale-form:${digest}`;
const query = new URLSearchParams(location.search);
const links = [...document.querySelectorAll("a.language")];

// From 0. Numbers that are no form's are as none.
function numbered(text) {
  const number = Number(text ?? NaN) - 1;
  return Number.isInteger(number) && number >= 0 && number < forms.length ? number : null;
}

function drawn() {
  let number = null;
  try {
    number = numbered(localStorage.getItem(drawnBefore));
    number ??= Math.floor(Math.random() * forms.length);
    localStorage.setItem(drawnBefore, number + 1);
  } catch { // a browser that keeps nothing
    number ??= Math.floor(Math.random() * forms.length);
  }
  return number;
}

const form = forms[numbered(query.get("form")) ?? drawn()];
for (const link of links) link.href = `${encodeURIComponent(link.dataset.code)}/${encodeURIComponent(form)}`;
const chosen = links.length === 1 ? links[0] : links.find((link) => link.dataset.code === query.get("lang"));
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
if (chosen) location.replace(chosen.href);
else document.documentElement.dataset.drawn = "true";
