"use strict";
// One form for one person: consent, then pairs and attention checks in an order and on sides drawn for this person, then
// the answers as one JSON file, whose schema is that of eval/questionnaire/answers.py. Nothing is sent anywhere.
// A person may go back and answer again until the file is saved; the file has the answers before as well.
const form = JSON.parse(document.getElementById("form").textContent);
const LOCK = 250; // milliseconds from a pair's appearance in which nothing is chosen: a double tap is one answer
const SIDES = ["first", "second"];
const KEYS = { 1: 0, 2: 1, ArrowLeft: 0, ArrowRight: 1 };
const kept = `pairscale:${form.form.digest}`; // this form's answers so far
const person = `pairscale-rater:${form.benchmark.digest}`; // one random id for all forms of a benchmark
const $ = (id) => document.getElementById(id);
const sentences = [$("first"), $("second")];
let memory = true; // whether the browser keeps what is saved
// rater, native, hidden_field, trials (check, index, swapped), answers (chosen, ms, earlier), seen (ms), saved
let state = null;
let at = 0; // place of the trial that is seen; behind the last: the end
let shown = 0; // when it appeared

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
  state = { rater, native: given.get("native") === "yes", hidden_field: given.get("more") !== "", trials: drawTrials(), answers: [], seen: [], saved: false };
  save();
  show(0);
}

function asked(trial) {
  return (trial.check ? form.checks : form.pairs)[trial.index];
}

function inOrder(trial) {
  const [one, other] = asked(trial).sentences;
  return trial.swapped ? [other, one] : [one, other];
}

// The trial at a place, with its answer if it has one, or the end. The heading takes the focus, so that a screen reader
// goes on from there.
function show(place) {
  at = place;
  const done = state !== null && at === state.trials.length;
  $("intro").hidden = state !== null;
  $("task").hidden = state === null || done;
  $("end").hidden = !done;
  if (state === null) return;
  if (done) {
    $("text").value = answersText();
    $("back-from-end").hidden = state.saved;
    $("finished").focus();
    return;
  }
  const answer = state.answers[at];
  inOrder(state.trials[at]).forEach((text, i) => {
    sentences[i].textContent = text;
    if (answer) sentences[i].parentElement.setAttribute("aria-pressed", answer.chosen === i);
    else sentences[i].parentElement.removeAttribute("aria-pressed");
  });
  $("back").hidden = at === 0;
  $("next").hidden = !answer;
  $("bar").value = state.answers.length;
  $("progress").textContent = filled(form.texts.progress, { number: at + 1, pairs: state.trials.length });
  $("question").focus({ preventScroll: true });
  scrollTo(0, 0);
  shown = performance.now();
}

// Leaves the trial that is seen, unless it has just appeared: true if so. Counts how long it was seen, each time.
function leave() {
  const ms = Math.round(performance.now() - shown);
  if ($("task").hidden || ms < LOCK) return false;
  state.seen[at] = (state.seen[at] ?? 0) + ms;
  return true;
}

function choose(side) {
  if (!leave()) return;
  const before = state.answers[at];
  const earlier = before ? [...before.earlier, { chosen: before.chosen, ms: before.ms }] : [];
  state.answers[at] = { chosen: side, ms: state.seen[at], earlier };
  save();
  show(at + 1);
}

// To the trial before (-1), or the one behind (1) if that which is seen has an answer.
function step(by) {
  if (at + by < 0 || at + by > state.answers.length || !leave()) return;
  save();
  show(at + by);
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function answersText() {
  const answers = [];
  const checks = [];
  state.trials.forEach((trial, position) => {
    const [first, second] = inOrder(trial);
    const { chosen, ms, earlier } = state.answers[position];
    const of = asked(trial);
    const said = { position, first, second, chosen: SIDES[chosen], ms, earlier: earlier.map((one) => ({ ...one, chosen: SIDES[one.chosen] })) };
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
  state.saved = true; // another file of the same person would have other answers
  $("back-from-end").hidden = true;
  save();
}

// For the next person at this device.
function again() {
  if (!confirm(form.texts.again_question)) return;
  storage((local) => [kept, person].forEach((name) => local.removeItem(name)));
  state = null;
  $("intro").reset();
  $("downloaded").hidden = true;
  show(0);
}

$("intro").addEventListener("submit", begin);
sentences.forEach((sentence, i) => sentence.parentElement.addEventListener("click", () => choose(i)));
document.addEventListener("keydown", (event) => {
  if ($("task").hidden || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (!(event.key in KEYS) && event.key !== "Backspace") return;
  event.preventDefault();
  if (event.key === "Backspace") step(-1);
  else choose(KEYS[event.key]);
});
addEventListener("beforeunload", (event) => { if (!memory && state !== null && $("downloaded").hidden) event.preventDefault(); });
$("back").addEventListener("click", () => step(-1));
$("next").addEventListener("click", () => step(1));
$("back-from-end").addEventListener("click", () => show(at - 1));
$("download").addEventListener("click", download);
$("again").addEventListener("click", again);
const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", setTheme);
setTheme();
state = JSON.parse(storage((local) => local.getItem(kept)));
if (state !== null) { // of a page that knew no way back
  state.seen ??= state.answers.map((answer) => answer.ms);
  for (const answer of state.answers) answer.earlier ??= [];
}
show(state?.answers.length ?? 0);
document.documentElement.dataset.drawn = "true";
