"""Templates: sources, errors, filling; in-template scores compared with plain loops over a model's logits."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import yaml

from eval.methods.judging import MethodUse, judge_pairs, template_reading
from eval.methods.method import NoParameters, methods
from eval.methods.templates import PLACEHOLDERS, Template, TemplateParameters, templates_of, within
from eval.scorers.base import TokenScores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.prompted_models import PAIRS, adds_bos, byte_level, joins, nats, pairs, scorer
from tests.support.random_models import LSTM, own_scorer, random_model
from tests.support.small_pretrained import policy

TEXTS = ["Good : {sentence}", "It is good .\n{sentence} is .", "“{sentence}"]


def user_templates(templates, kind="yes_no", language="en"):
    return templates_of("m", kind, templates, language)


def test_filling_a_template_returns_the_text_and_the_span_of_the_sentence():
    text, (start, end) = Template("t", "It: {sentence}!", "in_template").fill("a {b} {sentence}")
    assert text == "It: a {b} {sentence}!"
    assert text[start:end] == "a {b} {sentence}"
    text, (start, end) = Template("t", "not {other} {but} {target}", "comparative").fill("{other}", "that")
    assert text == "not that {but} {other}"
    assert text[start:end] == "{other}"


def test_all_methods_compose_together():
    values = ["method.morcela.beta=1", "method.morcela.gamma=0"]
    assert list(compose("eval", [f"method=[{','.join(methods())}]", *values]).method) == list(methods())


def test_templates_of_the_user_replace_the_default_ones(tmp_path):
    prompts = user_templates(["One? {sentence}", {"name": "two", "text": "{sentence} Two?"}])
    assert [(template.name, template.text) for template in prompts.templates] == [
        ("1", "One? {sentence}"), ("two", "{sentence} Two?")
    ]  # fmt: skip
    assert (prompts.answers, prompts.cue, prompts.space) == (("Yes", "No"), "\nAnswer:", " ")
    assert prompts.system == templates_of("m", "yes_no", None, "en").system
    file = tmp_path / "mine.yaml"
    content = {"answers": ["Ja", "Nein"], "system": None, "cue": "\nAntwort:", "space": " "}
    file.write_text(yaml.safe_dump(content | {"templates": ["{sentence}?"]}))
    prompts = user_templates(str(file), language="de")
    assert (prompts.system, prompts.answers, prompts.cue) == (None, ("Ja", "Nein"), "\nAntwort:")
    file.write_text("- 'Good: {sentence}'\n")
    assert user_templates(str(file), "in_template", None).templates[0].fill("X")[0] == "Good: X"


def test_tokens_within_a_span_are_selected_by_offsets():
    # "Ab: cd" with the sentence "cd" at 4: a token that joins ": c", the rest, bytes without a width, and the end.
    spans = [(0, 2), (2, 5), (5, 6)]
    scores = TokenScores(np.arange(3.0), np.asarray(spans), np.zeros(3, bool))
    assert within(scores, (4, 6)).spans.tolist() == [[2, 5], [5, 6]]
    spans = [(0, 4), (4, 4), (4, 5), (5, 5), (5, 6), (6, 6)]
    scores = TokenScores(np.arange(6.0), np.asarray(spans), np.zeros(6, bool))
    assert within(scores, (4, 6)).logprobs.tolist() == [1, 2, 3, 4]
    spans = [(0, 3), (4, 4), (4, 6)]  # the space at 3 is a token of its own, whose offsets leave spaces out
    scores = TokenScores(np.arange(3.0), np.asarray(spans), np.zeros(3, bool))
    assert within(scores, (4, 6)).logprobs.tolist() == [2]
    assert within(scores, (0, 6)).logprobs.tolist() == [0, 1, 2]


def plan(method, judge, **values):
    return MethodUse.of(method, dataclasses.replace(methods()[method].parameters, **values), judge, "en")


def overlapping_tokens(tokenizer, encoding, before, sentence):
    """Return True for tokens with a part of the sentence; by bytes for byte_level, whose offsets omit spaces."""
    tokens = tokenizer.convert_ids_to_tokens(encoding["input_ids"])
    if "Ġ" in tokenizer.get_vocab():
        ends = np.cumsum([len(token) for token in tokens])
        start = len(before.encode())
        return (ends > start) & (ends - [len(token) for token in tokens] < start + len(sentence.encode()))
    letters = range(len(before), len(before) + len(sentence))
    return np.asarray([any(start <= at < end for at in letters) for start, end in encoding["offset_mapping"]])


@pytest.mark.parametrize("scored", ["input", "target"])
@pytest.mark.parametrize("tokenizer", [byte_level, adds_bos, joins])
def test_in_template_scores_equal_a_loop_over_the_models_logits(tokenizer, scored):
    tokenizer = tokenizer()
    judge = scorer(tokenizer)
    plans = [
        plan("in_template_lp", judge, scored=scored, templates=TEXTS),
        plan("in_template_mean_lp", judge, scored=scored, templates=TEXTS),
        plan("in_template_pen_lp", judge, scored=scored, templates=TEXTS, alpha=0.8),
    ]
    rows = judge_pairs(judge, pairs(), plans, policy()).rows
    for number, text in enumerate(TEXTS):
        before, after = text.split("{sentence}")
        for pair, sides in enumerate(PAIRS):
            for side, sentence in zip(("good", "bad"), sides, strict=True):
                encoding = tokenizer(before + sentence + after, add_special_tokens=False, return_offsets_mapping=True)
                logprobs = nats(judge.model.model, [judge.begin], encoding["input_ids"])
                if scored == "target":
                    logprobs = logprobs[overlapping_tokens(tokenizer, encoding, before, sentence)]
                lp, mean, pen = (
                    rows[method].iloc[number * len(PAIRS) + pair]
                    for method in ("in_template_lp", "in_template_mean_lp", "in_template_pen_lp")
                )
                n = len(logprobs)
                assert (lp["template"], lp["pair_id"], lp[f"{side}_tokens"]) == (str(number + 1), str(pair), n)
                assert lp[side] == lp[f"{side}_lp"] == pytest.approx(logprobs.sum(), abs=1e-3)
                assert mean[side] == pytest.approx(logprobs.sum() / n, abs=1e-4)
                assert pen[side] == pytest.approx(logprobs.sum() / ((5 + n) / 6) ** 0.8, abs=1e-3)


def test_a_comparative_template_has_the_target_first():
    tokenizer = byte_level()
    judge = scorer(tokenizer)
    text = "Good : {target}\nBad : {other} ."
    method = "in_template_comparative_lp"
    rows = judge_pairs(judge, pairs(), [plan(method, judge, templates=[text])], policy()).rows[method]
    for row, (good, bad) in zip(rows.itertuples(), PAIRS, strict=True):
        for score, target, other in ((row.good, good, bad), (row.bad, bad, good)):
            ids = tokenizer(f"Good : {target}\nBad : {other} .", add_special_tokens=False)["input_ids"]
            assert score == pytest.approx(nats(judge.model.model, [judge.begin], ids).sum(), abs=1e-3)


def test_sentences_and_each_template_are_scored_once_for_all_methods():
    judge = scorer(byte_level())
    score, calls = judge.score, []
    judge.score = lambda texts, *more: calls.append(texts) or score(texts, *more)
    config = compose("eval", ["method=[lp,in_template_lp,in_template_pen_lp,in_template_comparative_lp]"])
    plans = [MethodUse.of(name, values, judge, "en") for name, values in config.method.items()]
    result = judge_pairs(judge, pairs(), plans, policy())
    assert len(calls) == 1 + 5 + 5  # the two in_template methods read the same
    assert all(len(texts) == 2 * len(PAIRS) for texts in calls)
    assert {name: len(rows) for name, rows in result.rows.items()} == {
        "lp": 4, "in_template_lp": 20, "in_template_pen_lp": 20, "in_template_comparative_lp": 20
    }  # fmt: skip


def test_methods_can_have_the_same_templates_in_another_order():
    judge = scorer(byte_level())
    templates = {"in_template_lp": TEXTS, "in_template_mean_lp": TEXTS[::-1]}
    plans = [plan(method, judge, scored="input", templates=texts) for method, texts in templates.items()]
    together = judge_pairs(judge, pairs(), plans, policy()).rows
    for one in plans:
        separate = judge_pairs(judge, pairs(), [one], policy()).rows[one.method]
        pd.testing.assert_frame_equal(together[one.method], separate)


def test_trained_models_score_templates_and_only_unknown_words_of_the_sentence_count():
    loaded = random_model(LSTM)
    judge = own_scorer(loaded, 100)
    sentences = [("The cats sleep .", "The zebra sleep .")]
    plans = [
        plan("in_template_lp", judge, scored=scored, templates=["Said : {sentence}"]) for scored in ("input", "target")
    ]
    prompt, target = (judge_pairs(judge, pairs(*sentences), [one], policy()).rows["in_template_lp"] for one in plans)
    for side, sentence in zip(("good", "bad"), sentences[0], strict=True):
        (tokens,) = judge.score([f"Said : {sentence}"], policy())
        assert prompt[side].item() == pytest.approx(tokens.logprobs.sum())
        assert target[side].item() == pytest.approx(tokens.logprobs[2:6].sum())  # without the end
        assert (prompt[f"{side}_tokens"].item(), target[f"{side}_tokens"].item()) == (7, 4)
    # "Said" and ":" are unknown in every text and do not count.
    assert (prompt["good_unk"].item(), prompt["bad_unk"].item(), prompt["crit_unk"].item()) == (0, 1, 1)
    assert prompt["good_chars"].item() == 13


def test_the_estimate_counts_the_words_of_templates():
    words = {"a b c": 3, "a d": 2}
    one = TemplateParameters(["x y {sentence}"])
    methods = {"lp": NoParameters(), "in_template_lp": one, "in_template_mean_lp": one}
    # both methods read the same: "x y" once, the sentences, and a begin symbol each
    assert template_reading(methods, "en", words, "treebank") == 2 + 5 + 2
    assert template_reading(methods, "en", words, "treebank", distinct=0.8) == 2 + 4 + 2
    # the words after the sentence are read for each: "y z"
    prompting = TemplateParameters(["x {sentence} y z"])
    assert template_reading({"yes_no": prompting}, "en", words, "treebank") == 1 + 5 + 2 * 2 + 2


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", PLACEHOLDERS)
def test_there_are_five_templates_of_each_kind_and_language(kind, language):
    prompts = templates_of("m", kind, None, language)
    filled = {template.fill(*"XY"[: len(PLACEHOLDERS[kind])])[0] for template in prompts.templates}
    assert len(filled) == 5
    assert not any("{" in text or "}" in text for text in filled)
    if kind in ("ab", "yes_no"):
        answers = {"ab": ("A", "B"), "yes_no": ("Yes", "No") if language == "en" else ("是", "否")}
        assert prompts.answers == answers[kind]
        assert prompts.space == (" " if language == "en" else "")


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["Is it good?"], r"method\.m\.templates: template 1 contains \{sentence\} 0 times"),
        (["{sentence} {sentence}"], r"template 1 contains \{sentence\} 2 times"),
        ([{"name": "x", "text": "{sentence}"}] * 2, r"same name \(x, x\)"),
        ([{"name": "x", "user": "{sentence}"}], r"\$\.templates\[0\]: .*text"),
        ([], r"at least one template"),
        (3, r"list of templates"),
        ("nowhere.yaml", r"nowhere\.yaml: .* method\.m\.templates=nowhere\.yaml"),
        ("prompts: []", r"list of templates"),
        (
            "answers: [Yes, No]\ntemplates: ['{sentence}']",
            r"answers\[0\]: expected str, got bool\. Put quotes around texts",
        ),
        ("- [", r"as YAML"),
        ("answers: !!set {Y, N}\ntemplates: ['{sentence}']", r"line 1: sets \(!!set\) are not supported"),
        ("cue: null\ntemplates: ['{sentence}']", r"answers, cue or space are missing"),
        ({"cue": "\ud800", "answers": ["Y", "N"], "space": " ", "templates": ["{sentence}"]}, r"surrogate pairs"),
        ([{"name": "\ud800", "text": "{sentence}?"}], "surrogate pairs"),
    ],
)
def test_bad_templates_raise_one_line_errors(tmp_path, templates, message):
    if isinstance(templates, str) and not templates.endswith(".yaml"):  # the text of a file
        (tmp_path / "mine.yaml").write_text(templates)
        templates = str(tmp_path / "mine.yaml")
    with pytest.raises((ConfigError, InputError), match=message) as caught:
        user_templates(templates)
    assert "\n" not in str(caught.value)


def test_an_unknown_language_needs_templates_of_the_user():
    with pytest.raises(ConfigError, match=r"benchmark\.language=de: method=m .* en, zh"):
        user_templates(None, language="de")
    with pytest.raises(ConfigError, match=r"method\.m\.templates: answers, cue or space are missing"):
        user_templates(["{sentence}"], language=None)
