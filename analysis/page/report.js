"use strict";
// Draws the charts in the page's colours, lets legends highlight a line, opens, sorts and filters tables, hands out files.
const charts = JSON.parse(document.getElementById("charts").textContent);
const files = JSON.parse(document.getElementById("files").textContent);
const root = document.documentElement;
const NARROW = 460; // pixels: below, the names at the ends of lines give way to the legend
const PNG_SCALE = 300 / 96; // of pixels of SVG: 300 an inch
const TEXT_GREY = "#666666"; // of figures.py
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
  if (isHighlighting(element)) view.addEventListener("click", (event, item) => item?.datum?.name && highlight(legendOf(element), item.datum.name));
}

function isHighlighting(element) {
  return charts[element.dataset.chart].params?.some((parameter) => parameter.name === "highlight");
}

// That of its own section or, where that has none, of the article's learning curves: of phenomena.
function legendOf(element) {
  return element.closest("section").querySelector(".legend") ?? element.closest("article").querySelector("section[id$='-curves'] .legend");
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
  const text = header.classList.contains("text") || header.cellIndex === 0;
  const descending = before ? before !== "descending" : !text; // the largest number first, but names from a to z
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const key = (row) => {
    const cell = row.cells[header.cellIndex];
    const text = cell.dataset.value ?? cell.textContent.trim();
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

// Above a table that says so: a text to find, and a choice of what its columns of names hold.
function filterable(table) {
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: spaced([...row.cells].map((cell) => cell.textContent).join(" ")) }));
  const bar = Object.assign(document.createElement("div"), { className: "filter", role: "search", ariaLabel: `Rows of ${table.closest("[role=region]").ariaLabel}` });
  const told = Object.assign(document.createElement("output"), { ariaLive: "polite" });
  const text = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off", spellcheck: false });
  const choices = [...table.tHead.querySelectorAll("th[data-choice]")].map((header) => Object.assign(document.createElement("select"), { header }));
  const held = (choice, row) => row.cells[choice.header.cellIndex].textContent;
  const fits = (row, but) => choices.every((choice) => choice === but || !choice.value || held(choice, row) === choice.value);
  const show = () => {
    for (const choice of choices) { // what the other choices leave; what is chosen stays, so that it can be taken back
      const names = new Set(rows.filter(({ row }) => fits(row, choice)).map(({ row }) => held(choice, row)));
      choice.replaceChildren(new Option("all", "", false, !choice.value), ...[...names].sort().map((name) => new Option(name, name, false, name === choice.value)));
    }
    const words = spaced(text.value).split(/\s+/);
    for (const { row, text: of } of rows) row.hidden = !(fits(row) && words.every((word) => of.includes(word)));
    told.textContent = `${rows.filter(({ row }) => !row.hidden).length} of ${rows.length} rows`;
  };
  const labelled = (name, field) => {
    const label = document.createElement("label");
    label.append(name, field);
    field.addEventListener("input", show);
    return label;
  };
  bar.append(labelled("Find", text), ...choices.map((choice) => labelled(choice.header.dataset.choice, choice)), told);
  table.closest(".tabular").before(bar);
  show();
}

// Names are found with underscores and without.
function spaced(text) {
  return text.toLowerCase().replaceAll("_", " ").trim();
}

// What `packed` of page.py put into the page: browsers open the files beside it in place of saving them.
async function unpacked(name, type) {
  const packed = Uint8Array.from(atob(files[name]), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Blob([await new Response(stream).arrayBuffer()], { type });
}

async function rasterised(name) {
  const image = new Image();
  const url = URL.createObjectURL(await unpacked(name, "image/svg+xml"));
  image.src = url;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: PNG_SCALE * image.width, height: PNG_SCALE * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function save(event) {
  event.preventDefault();
  const name = decodeURIComponent(event.currentTarget.getAttribute("href"));
  const blob = await (name.endsWith(".png") ? rasterised(name.replace(/png$/, "svg")) : unpacked(name, "application/octet-stream"));
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
for (const button of document.querySelectorAll(".further")) {
  button.addEventListener("click", () => button.closest(".tabular").classList.toggle("all-columns", isOn(button, "aria-pressed", button.getAttribute("aria-pressed") !== "true")));
}
document.querySelectorAll("table.filtered").forEach(filterable);
document.querySelectorAll(".sortable thead th").forEach(sortable);
for (const link of document.querySelectorAll(".files a[download]")) link.addEventListener("click", save);
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
Promise.all([...document.querySelectorAll(".chart")].map(draw)).then(() => { root.dataset.drawn = "true"; });
