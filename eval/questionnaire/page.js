"use strict";
// One form for one person: consent, then the questions in an order and on sides drawn for this person, then the answers
// as one JSON file, whose schema is that of eval/questionnaire/answers.py. Nothing is sent anywhere.
const $ = (id) => document.getElementById(id);
const form = JSON.parse($("form").textContent);
const LOCK = 250; // milliseconds from a pair's appearance in which nothing is chosen: a double tap is one answer
const KEYS = { 1: "first", 2: "second", ArrowLeft: "first", ArrowRight: "second" };
const ANSWERS = `pairscale:${form.id}`; // where the browser keeps this form's answers so far
const RATER = `pairscale-rater:${form.about.digest}`; // and one random id for all forms of a benchmark
let store = {}; // a browser's private windows may keep nothing: the page then says that it must stay open
try {
  store = localStorage;
} catch {
  $("no-storage").hidden = false;
}
let state = null; // rater, native, answers: the questions as this person sees them, with `chosen` and `ms` once answered
let shown = 0; // when the pair that is seen appeared

function shuffled(list) {
  return list.map((value) => [Math.random(), value]).sort(([one], [other]) => one - other).map(([, value]) => value);
}

function begin(event) {
  event.preventDefault();
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const rater = store[RATER] || Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  store[RATER] = rater;
  const answers = shuffled(form.questions).map(({ sentences, ...question }) => {
    const [first, second] = shuffled(sentences);
    return { ...question, first, second };
  });
  state = { rater, native: new FormData($("intro")).get("native") === "yes", answers };
  show();
}

// The first question without an answer, or the end. The heading takes the focus, so that a screen reader goes on there.
function show() {
  const at = state?.answers.findIndex((answer) => !answer.chosen);
  $("intro").hidden = state !== null;
  $("task").hidden = state === null || at < 0;
  $("end").hidden = state === null || at >= 0;
  if (state === null) return;
  store[ANSWERS] = JSON.stringify(state);
  if (at < 0) {
    $("text").value = JSON.stringify({ ...form.about, ...state }, null, 1) + "\n";
    $("finished").focus();
    return;
  }
  for (const side of ["first", "second"]) $(side).textContent = state.answers[at][side];
  $("bar").value = at;
  $("progress").textContent = filled(form.texts.progress, { number: at + 1, pairs: state.answers.length });
  $("question").focus({ preventScroll: true });
  scrollTo(0, 0);
  shown = performance.now();
}

function choose(chosen) {
  const ms = Math.round(performance.now() - shown);
  if ($("task").hidden || ms < LOCK) return;
  Object.assign(state.answers.find((answer) => !answer.chosen), { chosen, ms });
  show();
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function download() {
  const name = `answers-${form.about.benchmark}-${form.about.form}-${state.rater}.json`;
  const href = URL.createObjectURL(new Blob([$("text").value], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  $("downloaded").textContent = filled(form.texts.downloaded, { file: name });
}

// For the next person at this device.
function again() {
  if (!confirm(form.texts.again_question)) return;
  delete store[ANSWERS];
  delete store[RATER];
  location.reload();
}

$("intro").addEventListener("submit", begin);
for (const side of ["first", "second"]) $(side).addEventListener("click", () => choose(side));
document.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  choose(KEYS[event.key]);
});
$("download").addEventListener("click", download);
$("again").addEventListener("click", again);
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
state = JSON.parse(store[ANSWERS] ?? "null");
show();
document.documentElement.dataset.drawn = "true";
