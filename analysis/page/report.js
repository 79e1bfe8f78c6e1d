"use strict";
// Draws the charts in the page's font, lets legends highlight a curve, and sorts tables. report.css has the colours.
const root = document.documentElement;
const NARROW = 460; // in narrower charts (pixels), a legend replaces the names at the ends of lines
const views = new Map();

async function draw(element) {
  const spec = JSON.parse(element.querySelector("script").textContent);
  spec.autosize = { type: "fit-x", contains: "padding" };
  spec.background = spec.config.background = null;
  spec.config.font = getComputedStyle(document.body).fontFamily;
  if (element.clientWidth < NARROW) {
    const [names, marks] = [true, false].map((isName) => spec.layer.filter(({ encoding }) => (encoding.x?.value === "width") === isName));
    spec.layer = marks;
    for (const channel of marks.flatMap(({ encoding }) => Object.values(encoding))) {
      if (names.length && channel.field === "curve" && channel.scale) channel.legend = { title: null, orient: "top", symbolOpacity: 1 };
      if (channel.legend) Object.assign(channel.legend, { columns: 1, labelLimit: element.clientWidth - 60 });
    }
  }
  const { view } = await vegaEmbed(element, spec, { renderer: "svg", actions: false });
  element.querySelector("svg").setAttribute("aria-hidden", "true"); // the element has a label, and the numbers are in the table
  if (!spec.params) return;
  views.set(element, view);
  view.addEventListener("click", (event, item) => item?.datum?.curve && highlight(element, item.datum.curve));
}

// Fades all other curves in the charts of a benchmark. The second time, it shows them again.
function highlight(element, name) {
  const article = element.closest("article");
  const shown = article.dataset.highlight === name ? "" : name;
  article.dataset.highlight = shown;
  for (const button of article.querySelectorAll(".legend button")) button.setAttribute("aria-pressed", String(button.dataset.name === shown));
  for (const chart of article.querySelectorAll(".chart")) views.get(chart)?.signal("highlight", shown).runAsync();
}

function sort(header) {
  const body = header.closest("table").tBodies[0];
  const before = header.getAttribute("aria-sort");
  const descending = before ? before !== "descending" : header.className === "number"; // first, numbers descend and names ascend
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const key = (row) => {
    const text = row.cells[header.cellIndex].textContent.trim();
    const number = Number(text.replace(/^\[([^,]+),.*\]$/, "$1").replaceAll(",", "").replace("\u2212", "-").replace("%", ""));
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // unknown values come last
    const order = typeof x === "number" ? x - y : x.localeCompare(y);
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort(compare));
}

function setTheme(theme) {
  root.dataset.theme = theme;
}

const contents = document.getElementById("contents");
contents.addEventListener("click", () => contents.hidePopover());
document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
for (const button of document.querySelectorAll(".legend button")) button.addEventListener("click", () => highlight(button, button.dataset.name));
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => sort(button.parentElement));
addEventListener("beforeprint", () => { // when printed, all sections are expanded and the theme is light
  for (const details of document.querySelectorAll("details")) details.open = true;
  setTheme("light");
});
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
Promise.all([...document.querySelectorAll(".chart")].map(draw)).then(() => { root.dataset.drawn = "true"; });
