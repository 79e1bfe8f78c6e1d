"use strict";
// One form for one person: consent, then pairs and attention checks in an order and on sides drawn for this person, then
// the answers as one JSON file, whose schema is that of eval/questionnaire/answers.py. Nothing is sent anywhere.
const form = JSON.parse(document.getElementById("form").textContent);
const LOCK = 250; // milliseconds from a pair's appearance in which nothing is chosen: a double tap is one answer
const KEYS = { 1: 0, 2: 1, ArrowLeft: 0, ArrowRight: 1 };
const kept = `pairscale:${form.form.digest}`; // this form's answers so far
const person = `pairscale-rater:${form.benchmark.digest}`; // one random id for all forms of a benchmark
const $ = (id) => document.getElementById(id);
const sentences = [$("first"), $("second")];
let memory = true; // whether the browser keeps what is saved
let state = null; // rater, native, hidden_field, trials (check, index, swapped), answers (chosen, ms)
let shown = 0; // when the pair that is seen appeared

// Private windows, and some browsers for files, refuse: the page then says that it must stay open.
function storage(work) {
  try {
    return work(localStorage);
  } catch {
    memory = false;
    return null;
  }
}

function save() {
  storage((local) => local.setItem(kept, JSON.stringify(state)));
  $("no-storage").hidden = memory;
}

// A whole number below `limit`, each as likely: what would favour small ones is drawn again.
function random(limit) {
  const drawn = new Uint32Array(1);
  do crypto.getRandomValues(drawn); while (drawn[0] >= 2 ** 32 - (2 ** 32 % limit));
  return drawn[0] % limit;
}

function shuffled(length) {
  const order = Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const j = random(i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

// Pairs in random order; one check somewhere in each of as many equal parts of the form as there are checks.
function drawTrials() {
  const trials = shuffled(form.pairs.length).map((index) => ({ check: false, index, swapped: random(2) === 1 }));
  const checks = shuffled(form.checks.length).map((index) => ({ check: true, index, swapped: random(2) === 1 }));
  const all = trials.length + checks.length;
  checks.forEach((check, i) => {
    const [from, to] = [Math.floor((all * i) / checks.length), Math.floor((all * (i + 1)) / checks.length)];
    trials.splice(from + random(to - from), 0, check);
  });
  return trials;
}

function begin(event) {
  event.preventDefault();
  const given = new FormData($("intro"));
  let rater = storage((local) => local.getItem(person));
  if (!/^[0-9a-f]{16}$/.test(rater)) {
    rater = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    storage((local) => local.setItem(person, rater));
  }
  state = { rater, native: given.get("native") === "yes", hidden_field: given.get("more") !== "", trials: drawTrials(), answers: [] };
  save();
  show();
}

function asked(trial) {
  return (trial.check ? form.checks : form.pairs)[trial.index];
}

function inOrder(trial) {
  const [one, other] = asked(trial).sentences;
  return trial.swapped ? [other, one] : [one, other];
}

// The next pair, or the end. The heading takes the focus, so that a screen reader goes on from there.
function show() {
  const number = state?.answers.length ?? 0;
  const done = state !== null && number === state.trials.length;
  $("intro").hidden = state !== null;
  $("task").hidden = state === null || done;
  $("end").hidden = !done;
  if (state === null) return;
  if (done) {
    $("text").value = answersText();
    $("finished").focus();
    return;
  }
  inOrder(state.trials[number]).forEach((text, i) => { sentences[i].textContent = text; });
  $("bar").value = number;
  $("progress").textContent = filled(form.texts.progress, { number: number + 1, pairs: state.trials.length });
  $("question").focus({ preventScroll: true });
  scrollTo(0, 0);
  shown = performance.now();
}

function choose(place) {
  const ms = Math.round(performance.now() - shown);
  if ($("task").hidden || ms < LOCK) return;
  state.answers.push({ chosen: place, ms });
  save();
  show();
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function answersText() {
  const answers = [];
  const checks = [];
  state.trials.forEach((trial, position) => {
    const [first, second] = inOrder(trial);
    const { chosen, ms } = state.answers[position];
    const of = asked(trial);
    const said = { position, first, second, chosen: ["first", "second"][chosen], ms };
    if (trial.check) checks.push({ ...said, passed: [first, second][chosen] === of.sentences[of.right] });
    else answers.push({ paradigm: of.paradigm, pair_id: of.pair_id, ...said });
  });
  const { schema, version, benchmark } = form;
  const { rater, native, hidden_field } = state;
  return JSON.stringify({ schema, version, benchmark, form: form.form, rater, native, hidden_field, answers, checks }, null, 1) + "\n";
}

function download() {
  const name = `answers-${form.benchmark.name}-${form.form.name}-${state.rater}.json`;
  const href = URL.createObjectURL(new Blob([answersText()], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  $("downloaded").textContent = filled(form.texts.downloaded, { file: name });
  $("downloaded").hidden = false;
}

// For the next person at this device.
function again() {
  if (!confirm(form.texts.again_question)) return;
  storage((local) => [kept, person].forEach((name) => local.removeItem(name)));
  state = null;
  $("intro").reset();
  $("downloaded").hidden = true;
  show();
}

$("intro").addEventListener("submit", begin);
sentences.forEach((sentence, i) => sentence.parentElement.addEventListener("click", () => choose(i)));
document.addEventListener("keydown", (event) => {
  if (event.key in KEYS && !$("task").hidden && !event.repeat && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    choose(KEYS[event.key]);
  }
});
addEventListener("beforeunload", (event) => { if (!memory && state !== null && $("downloaded").hidden) event.preventDefault(); });
$("download").addEventListener("click", download);
$("again").addEventListener("click", again);
const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", setTheme);
setTheme();
state = JSON.parse(storage((local) => local.getItem(kept)));
show();
document.documentElement.dataset.drawn = "true";
