"""Prompting methods compared with plain loops over a model's logits, for many tokenizers and chat templates."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.methods.builtin.prompts import AbPrompt, PromptParameters, orders
from eval.methods.judging import MethodUse, judge_pairs
from eval.methods.method import NoParameters
from eval.scorers.masked import MaskedScorer
from eval.scores.accuracy import share_of_a
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.prompted_models import PAIRS, adds_bos, byte_level, joins, nats, pairs, scorer
from tests.support.random_models import LSTM, own_scorer, random_model
from tests.support.small_pretrained import policy

SYSTEM, TEXTS = "It is good or bad .", ["Is “{sentence}” good ?", "{sentence}\nSay Yes or No ."]
ANSWERS = {"en": ["Yes", "No"], "zh": ["是", "否"]}
CHATML = (
    "{% for m in messages %}<|user|>{{ m.role }}\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|model|>\n{% endif %}"
)
NO_SYSTEM = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
NO_SYSTEM += "<|user|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|model|>{% endif %}"
LEAVES_OUT = "{% for m in messages if m.role == 'user' %}<|user|>{{ m.content }}{% endfor %}<|model|>"


def yes_no(judge, language="en", system=SYSTEM, templates=TEXTS, **values):
    space = " " if language == "en" else ""
    texts = {"system": system, "answers": ANSWERS[language], "cue": "\nAnswer:", "space": space}
    return MethodUse.of("yes_no", PromptParameters(texts | {"templates": templates}, **values), judge, language)


def ab_prompt(judge):
    texts = {"system": SYSTEM, "templates": ["Say A or B .\nA : {a}\nB : {b}"]}
    return MethodUse.of("ab_prompt", AbPrompt(texts), judge, "en")


def judge_with(judge, plan, *sentences, scoring_policy=None):
    result = judge_pairs(judge, pairs(*sentences), [plan], scoring_policy or policy())
    return result.rows[plan.method], result.prompts.get(plan.method)


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def answer_lps(judge, prompt, answers, begins=False):
    """Return ln p of each answer from the first token on that is not the prompt's alone, by a loop over logits.

    The model's begin symbol comes first, unless the prompt `begins` with one of its own.
    """
    tokenizer = judge.tokens.tokenizer
    answered = [ids(tokenizer, prompt + answer) for answer in answers]
    first = len(ids(tokenizer, prompt))
    while not all(one[:first] == ids(tokenizer, prompt)[:first] for one in answered):
        first -= 1
    before = [] if begins else [judge.begin]
    lps = [nats(judge.model.model, [*before, *one][:1], [*before, *one][1:]) for one in answered]
    return [lp[first - begins :].sum() for lp in lps]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("tokenizer", [byte_level, lambda: byte_level(259), adds_bos], ids=["gpt2", "bytes", "llama"])
def test_yes_no_equals_a_loop_over_the_models_logits(tokenizer, language):
    tokenizer = tokenizer()
    judge = scorer(tokenizer)
    rows, prompts = judge_with(judge, yes_no(judge, language))
    answers = [(" " if language == "en" else "") + answer for answer in ANSWERS[language]]
    assert len(rows) == 2 * len(PAIRS)
    for number, text in enumerate(TEXTS):
        for pair, sides in enumerate(PAIRS):
            row = rows.iloc[number * len(PAIRS) + pair]
            assert (row["template"], row["pair_id"], row["order"]) == (str(number + 1), str(pair), None)
            for side, sentence in zip(("good", "bad"), sides, strict=True):
                prompt = f"{SYSTEM}\n{text.replace('{sentence}', sentence, 1)}\nAnswer:"
                lps = answer_lps(judge, prompt, answers)
                yes, no = map(math.exp, lps)
                assert row[f"{side}_lp"] == pytest.approx(lps[0], abs=1e-3)
                assert row[side] == pytest.approx(math.log(yes / (yes + no)), abs=1e-3)  # equation 4
                length = len(ids(tokenizer, prompt + answers[0])) - len(ids(tokenizer, prompt))
                assert row[f"{side}_tokens"] == length
    tokenized = [tokenizer.convert_ids_to_tokens(ids(tokenizer, "Answer:" + answer)) for answer in answers]
    assert [forms[0] for forms in prompts["answers"].values()] == [
        tokens[len(ids(tokenizer, "Answer:")) :] for tokens in tokenized
    ]
    assert list(prompts["answers"]) == answers
    assert prompts["example"] == f"{SYSTEM}\n{TEXTS[0].replace('{sentence}', PAIRS[0][0])}\nAnswer:"


def test_prompts_read_in_small_parts_give_the_same_scores(monkeypatch):
    judge = scorer(byte_level())
    rows, prompts = judge_with(judge, yes_no(judge))
    monkeypatch.setattr("eval.scorers.causal.READ", 3)
    parted, parted_prompts = judge_with(judge, yes_no(judge))
    assert parted_prompts == prompts
    pd.testing.assert_frame_equal(parted, rows, rtol=1e-5)


@pytest.mark.parametrize(("language", "token"), [("en", [": Yes"]), ("zh", [":是"])])
def test_an_answer_that_merges_with_the_end_of_the_prompt_is_scored_from_the_merged_token(language, token):
    tokenizer = joins()
    judge = scorer(tokenizer)
    sentence = "The cat"
    rows, prompts = judge_with(judge, yes_no(judge, language), (sentence, sentence))
    prompt = f"{SYSTEM}\n{TEXTS[0].replace('{sentence}', sentence)}\nAnswer:"
    answers = [(" " if language == "en" else "") + answer for answer in ANSWERS[language]]
    # The answer is in the token of the prompt's last character.
    assert len(ids(tokenizer, prompt + answers[0])) == len(ids(tokenizer, prompt))
    lps = answer_lps(judge, prompt, answers)
    assert rows["good_lp"].iloc[0] == pytest.approx(lps[0], abs=1e-3)
    assert rows["good"].iloc[0] == pytest.approx(lps[0] - np.logaddexp(*lps), abs=1e-3)
    assert next(iter(prompts["answers"].values())) == [token]
    assert rows["good"].iloc[0] == rows["bad"].iloc[0]  # equal sentences tie


def chatting(template, tokenizer=byte_level):
    tokenizer = tokenizer()
    tokenizer.chat_template = template
    return scorer(tokenizer)


def spaced(space):
    """Return a template like Llama 2's, `[INST] question [/INST] answer`: the space is of the answer's first token."""
    return (
        "{% for m in messages %}{% if m.role == 'assistant' %}" + repr(space).join(["{{ ", " + m.content }}"])
        + "{% else %}<|user|>{{ m.content }}<|model|>{% endif %}{% endfor %}"
    )  # fmt: skip


WITH_BOS = "{{ bos_token }}{{ messages[0].content }} : {{ messages[1].content }} ."
QUESTION = "Is “The cat” good ?"
CHATML_PROMPT = f"<|user|>system\n{SYSTEM}\n<|user|>user\n{QUESTION}\n<|model|>\n"


@pytest.mark.parametrize(
    ("template", "tokenizer", "prompt", "space"),
    [
        (CHATML, byte_level, CHATML_PROMPT, ""),
        (WITH_BOS, byte_level, f"<|endoftext|>{SYSTEM} : {QUESTION} .", ""),  # and no second one is added
        (WITH_BOS, adds_bos, f"<s>{SYSTEM} : {QUESTION} .", ""),
        *((spaced(space), byte_level, None, space) for space in (" ", "\n", "")),
    ],
)
def test_an_instruct_model_is_prompted_with_its_chat_template_alone(template, tokenizer, prompt, space):
    judge = chatting(template, tokenizer)
    rows, prompts = judge_with(judge, yes_no(judge), ("The cat", "The dog"))
    assert prompt in (None, prompts["example"])
    answers = [space + "Yes", space + "No"]
    assert list(prompts["answers"]) == answers
    lps = answer_lps(judge, prompts["example"], answers, begins=True)
    assert rows["good_lp"].iloc[0] == pytest.approx(lps[0], abs=1e-3)
    assert rows["good"].iloc[0] == pytest.approx(lps[0] - np.logaddexp(*lps), abs=1e-3)


@pytest.mark.parametrize("template", [NO_SYSTEM, LEAVES_OUT])
def test_a_system_message_that_a_chat_template_rejects_is_put_into_the_user_message(template):
    judge = chatting(template)
    _, prompts = judge_with(judge, yes_no(judge), ("The cat", "The dog"))
    assert prompts["example"] == f"<|user|>{SYSTEM}\nIs “The cat” good ?<|model|>"
    assert not prompts["system_role"]
    _, prompts = judge_with(judge, yes_no(judge, system=None), ("The cat", "The dog"))
    assert prompts["example"] == "<|user|>Is “The cat” good ?<|model|>"


def test_prompting_with_or_without_the_chat_template_can_be_forced():
    judge = chatting(CHATML)
    plan = yes_no(judge, chat=False)
    assert judge_with(judge, plan)[1]["example"].endswith("\nAnswer:")
    assert (plan.metadata()["parameters"]["chat"], yes_no(judge).metadata()["parameters"]["chat"]) == (False, True)
    with pytest.raises(ConfigError, match=r"method\.yes_no\.chat=true: m has no chat template"):
        yes_no(scorer(byte_level()), chat=True)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: .* chat template"):
        judge_with(judge, yes_no(judge), scoring_policy=policy(context="eos"))


def test_context_precedes_the_prompt():
    tokenizer = byte_level()
    judge = scorer(tokenizer)
    rows, prompts = judge_with(judge, yes_no(judge), ("The cat", "The dog"), scoring_policy=policy(context="eos"))
    answered = ids(tokenizer, prompts["example"] + " Yes")
    assert rows["good_lp"].iloc[0] == pytest.approx(nats(judge.model.model, [judge.begin] * 4, answered)[-1], abs=1e-3)


def test_trained_models_answer_prompts():
    loaded = random_model(LSTM, "char")
    judge = own_scorer(loaded, 100)
    prompts = ["The cat sleep", "The dog bark"]
    answers = judge.continuations(prompts, ["s", " n"], policy())
    assert answers.tokens == [[["s"]], [[" ", "n"]]]
    assert answers.counts.tolist() == [[1, 2]] * 2
    for row, prompt in zip(answers.logprobs, prompts, strict=True):
        for value, answer in zip(row, ["s", " n"], strict=True):
            (tokens,) = judge.score([prompt + answer], policy())
            assert value == pytest.approx(tokens.logprobs[len(prompt) :].sum(), abs=1e-5)
    with pytest.raises(RunError, match=r"m: the answer 'X' isn't in the model's vocabulary"):
        judge.continuations(prompts, ["s", "X"], policy())


def test_models_and_answers_that_cannot_be_used_are_rejected():
    judge = scorer(byte_level())
    with pytest.raises(RunError, match=r"m: the answers ' No' and ' No' have the same tokens"):
        judge.continuations(["The cat"], [" No", " No"], policy())
    with pytest.raises(ConfigError, match=r"method=yes_no: .* can't answer prompts"):
        yes_no(SimpleNamespace(answers_prompts=False, masked=False, name="m"))
    masked = object.__new__(MaskedScorer)
    for method in ("yes_no", "in_template_lp", "vote_p"):
        with pytest.raises(ConfigError, match=rf"method={method} doesn't work .* masked .*pll"):
            MethodUse.of(method, compose("eval", [f"method=[{method}]"]).method[method], masked, "en")


def test_ab_prompt_compares_the_letters_of_the_two_sentences():
    judge = scorer(byte_level())
    sentences = [(f"The cat {number} sleeps", f"The cat {number} sleep") for number in range(8)]
    rows, prompts = judge_with(judge, ab_prompt(judge), *sentences)
    assert prompts["answers"] == {" A": [["ĠA"]], " B": [["ĠB"]]}
    assert set(rows["order"]) == {"A", "B"}
    chose_a = 0
    for row, (good, bad) in zip(rows.itertuples(), sentences, strict=True):
        a, b = (good, bad) if row.order == "A" else (bad, good)
        prompt = f"{SYSTEM}\nSay A or B .\nA : {a}\nB : {b}\nAnswer:"
        lps = dict(zip("AB", answer_lps(judge, prompt, [" A", " B"]), strict=True))
        other = "B" if row.order == "A" else "A"
        assert (row.good_lp, row.bad_lp) == pytest.approx((lps[row.order], lps[other]), abs=1e-3)
        both = np.logaddexp(*lps.values())
        assert (row.good, row.bad) == pytest.approx((lps[row.order] - both, lps[other] - both), abs=1e-3)
        chose_a += lps["A"] > lps["B"]
    assert share_of_a(rows) == chose_a / len(sentences)


def test_the_share_of_a_ignores_ties_and_missing_scores():
    rows = pairs(*[("x", "y")] * 6).assign(
        order=["A", "A", "B", "B", "A", "B"], good=[1.0, 0, 1, 0, 1, np.nan], bad=[0.0, 1, 0, 1, 1, np.nan]
    )
    # A, B, B, A, then a tie and a pair without scores, which are neither
    assert share_of_a(rows) == 2 / 4
    assert math.isnan(share_of_a(rows.assign(order=None)))


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.sets(st.integers(0, 99), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_a_pair_depends_only_on_its_name_and_the_seed(seed, subset, random):
    all_pairs = pairs(*[("x", "y")] * 100)
    letters = orders(all_pairs, seed)
    some = list(subset)
    random.shuffle(some)
    assert orders(all_pairs.iloc[some], seed).tolist() == letters[some].tolist()
    assert 20 < (letters == "A").sum() < 80
    assert orders(all_pairs, seed + 1).tolist() != letters.tolist()
    assert orders(all_pairs.assign(paradigm="q"), seed).tolist() != letters.tolist()


def test_probabilities_near_one_do_not_tie():
    """1 - 1e-20 and 1 - 1e-30 are the same float, but their logarithms differ."""
    judge = scorer(byte_level())
    sure = iter([-1.0, -47.0, -1.0, -70.0])
    plan = yes_no(judge, templates=["{sentence}"])
    other = scorer(byte_level())
    other.model.read_texts = lambda texts, *_: [np.asarray([next(sure)]) for _ in texts]
    models = SimpleNamespace(score=judge.score, continuations=other.continuations)
    row = judge_with(models, plan, ("The cat", "The dog"))[0].iloc[0]
    assert row["good"] < row["bad"] < 0
    assert row["good"] == pytest.approx(-1.05e-20, rel=0.01)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for message in messages %}", r"TemplateSyntaxError"),
        ("{{ messages[0].content }}{{ raise_exception('none of it') }}", r"TemplateError: none of it"),
        ("{{ messages.__class__.__base__.__subclasses__() }}", r"SecurityError"),
        ("{% for i in range(10**12) %}x{% endfor %}", r"OverflowError"),
        ({"tool_use": "{{ messages }}"}, r"ValueError"),
    ],
)
def test_a_bad_chat_template_raises_a_one_line_error(template, message):
    with pytest.raises(ConfigError, match=rf"m: the model's chat template .*{message}.*chat=false"):
        yes_no(chatting(template))


@pytest.mark.parametrize("side", ["good", "bad"])
@pytest.mark.parametrize("plan", [yes_no, ab_prompt, lambda _: MethodUse("lp", NoParameters())])
def test_an_error_names_the_pair_of_a_too_long_text(plan, side):
    judge = scorer(byte_level())
    sentences = [("The cat", "The dog"), ("A cat", "A dog"), ("The dog", "A dog")]
    sentences[1] = ("猫" * 140, "A dog") if side == "good" else ("A cat", "猫" * 140)
    named = pairs(*sentences).iloc[1]
    where = f"pair {named['pair_id']} of {named['paradigm']}"
    with pytest.raises(InputError, match=rf"m can read at most 400 tokens, but '.* has 4\d\d.* {where}"):
        judge_pairs(judge, pairs(*sentences), [plan(judge)], policy())


def test_sentences_of_unknown_words_only_raise_an_error():
    """A model of another language would give all sentences equal scores."""
    judge = own_scorer(random_model(LSTM), 100)
    plan = MethodUse("lp", NoParameters())
    with pytest.raises(InputError, match=r"m: all tokens of all 2 texts, such as '猫在睡', are unknown"):
        judge_pairs(judge, pairs(("猫在睡", "狗在睡")), [plan], policy())
