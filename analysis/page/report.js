"use strict";
// Draws the charts in the page's colours, lets legends highlight a curve, and opens and sorts tables.
const charts = JSON.parse(document.getElementById("charts").textContent);
const root = document.documentElement;
const NARROW = 460; // pixels: below, the names at the ends of lines give way to the legend
const TEXT_GREY = "#666666"; // of style.py
const LEGEND_LINES = "length(datum.label) < 33 ? datum.label : indexof(datum.label, ' \u2212 ') > 0 ? split(replace(datum.label, ' \u2212 ', '\\n\u2212 '), '\\n') : split(datum.label, ', ')";
const views = new Map();

// Colours are those of the theme, whichever it is at the moment: they are variables of the page.
function themed(specification) {
  const [ink, quiet, line] = ["var(--ink)", "var(--quiet)", "var(--line)"];
  const spec = JSON.parse(JSON.stringify(specification).replaceAll(TEXT_GREY, quiet)); // too dark on a dark page
  const config = spec.config;
  spec.background = config.background = null;
  config.font = getComputedStyle(document.body).fontFamily;
  Object.assign((config.axis ??= {}), { labelColor: quiet, titleColor: quiet, domainColor: line, tickColor: line, gridColor: line, gridOpacity: 1 });
  Object.assign((config.title ??= {}), { color: ink, subtitleColor: quiet });
  Object.assign((config.legend ??= {}), { labelColor: ink });
  config.text = { ...config.text, color: ink };
  return spec;
}

// Long names in a legend go on in further lines, the axis' title ends where the axis does. Lines have no names: a legend
// has them, that of the page or, where the chart has none there, its own.
function narrow(spec, legendOnPage, width) {
  const named = spec.layer?.length;
  if (spec.layer) spec.layer = spec.layer.filter(({ encoding }) => encoding?.x?.value !== "width" && encoding?.x2?.value !== "width");
  const lost = spec.layer?.length < named && !legendOnPage;
  for (const layer of spec.layer ?? [spec]) {
    for (const [name, channel] of Object.entries(layer.encoding ?? {})) {
      if (lost && ["color", "shape", "strokeDash"].includes(name) && channel.scale?.domain) channel.legend = { title: null, orient: "top", labelLimit: 400, symbolOpacity: 1 };
      if (channel.legend) Object.assign(channel.legend, { columns: 1, labelExpr: LEGEND_LINES, labelLimit: width / 2 });
    }
  }
  spec.config.axisX = { titleAnchor: "end", ...spec.config.axisX };
}

async function draw(element) {
  const spec = themed(charts[element.dataset.chart]);
  spec.autosize = { type: "fit-x", contains: "padding" };
  if (element.clientWidth < NARROW) narrow(spec, isHighlighting(element), element.clientWidth);
  const { view } = await vegaEmbed(element, spec, { renderer: "svg", actions: false });
  element.querySelector("svg").setAttribute("aria-hidden", "true"); // the element has a name, and the table the numbers
  views.set(element, view);
  if (isHighlighting(element)) view.addEventListener("click", (event, item) => item?.datum?.curve && highlight(legendOf(element), item.datum.curve));
}

function isHighlighting(element) {
  return charts[element.dataset.chart].params?.some((parameter) => parameter.name === "highlight");
}

// The legend of the chart's own section or, if it has none, the first one of its article.
function legendOf(element) {
  return element.closest("section").querySelector(".legend") ?? element.closest("article").querySelector(".legend");
}

function highlight(legend, name) {
  const buttons = [...legend.querySelectorAll("button")];
  const on = buttons.find((button) => button.dataset.name === name)?.getAttribute("aria-pressed") !== "true";
  for (const button of buttons) button.setAttribute("aria-pressed", String(on && button.dataset.name === name));
  const drawn = [...legend.closest("article").querySelectorAll(".chart")].filter((element) => isHighlighting(element) && legendOf(element) === legend);
  for (const element of drawn) views.get(element)?.signal("highlight", on ? name : "").runAsync();
}

// A header's content becomes a button, which mouse and keyboard reach alike.
function sortable(header) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  button.addEventListener("click", () => sort(header));
}

function sort(header) {
  const body = header.closest("table").tBodies[0];
  const before = header.getAttribute("aria-sort");
  const text = body.rows[0]?.cells[header.cellIndex].classList.contains("text");
  const descending = before ? before !== "descending" : !text; // the largest number first, but names from a to z
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const key = (row) => {
    const cell = row.cells[header.cellIndex];
    const text = cell.textContent.trim();
    const number = Number(text.replace(/^\[([^,]+),.*\]$/, "$1").replaceAll(",", "").replace("\u2212", "-").replace("%", ""));
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // what is not known comes last
    const order = typeof x === "number" ? x - y : x.localeCompare(y);
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort(compare));
}

function setTheme(theme) {
  root.dataset.theme = theme;
}

function isOn(button, attribute, on) {
  button.setAttribute(attribute, String(on));
  return on;
}

// The contents: a menu on narrow screens; on wide ones, where the reader is.
const menu = document.getElementById("menu");
const contents = document.getElementById("contents");
const toggleMenu = (open) => contents.classList.toggle("open", isOn(menu, "aria-expanded", open));
menu.addEventListener("click", () => toggleMenu(menu.getAttribute("aria-expanded") !== "true"));
contents.addEventListener("click", ({ target }) => target.closest("a") && toggleMenu(false));
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
  toggleMenu(false);
  menu.focus();
});
const links = new Map([...contents.querySelectorAll("a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
const seen = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
    for (const [id, link] of links) link.toggleAttribute("aria-current", id === target.id);
  }
}, { rootMargin: "-10% 0px -80% 0px" });
for (const id of links.keys()) if (document.getElementById(id)) seen.observe(document.getElementById(id));

// Paper has no buttons: all is open there, and light.
let closed = [];
let theme = "light";
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
  theme = root.dataset.theme;
  setTheme("light");
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
  setTheme(theme);
});

document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
for (const button of document.querySelectorAll(".legend button")) button.addEventListener("click", () => highlight(button.closest(".legend"), button.dataset.name));
for (const button of document.querySelectorAll(".more")) {
  const all = button.textContent;
  button.addEventListener("click", () => {
    const open = isOn(button, "aria-expanded", button.getAttribute("aria-expanded") !== "true");
    button.closest(".tabular").classList.toggle("all-rows", open);
    button.textContent = open ? "First rows" : all;
  });
}
for (const table of document.querySelectorAll(".sortable")) {
  for (const header of table.tHead.rows[0].cells) {
    header.scope = "col";
    if (table.tBodies[0].rows[0]?.cells[header.cellIndex].classList.contains("text")) header.classList.add("text");
    sortable(header);
  }
}
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
Promise.all([...document.querySelectorAll(".chart")].map(draw)).then(() => { root.dataset.drawn = "true"; });
