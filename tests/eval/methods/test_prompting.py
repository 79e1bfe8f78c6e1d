"""Prompts: answers of a model against a plain loop over its own logits, with tokenizers and chat templates of kinds."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.config import MethodConfig, TemplateConfig, TemplatesConfig
from eval.methods.builtin.ab_prompt import orders
from eval.methods.judging import MethodUse, judge_pairs
from eval.scorers.masked import MaskedScorer
from eval.scorers.ngram import NgramScorer
from eval.scores.accuracy import share_of_a
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.prompted_models import PAIRS, TEXT, adds_bos, byte_level, joins, nats, pairs, scorer
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


def yes_no(asked, language="en", system=SYSTEM, **values):
    templates = [TemplateConfig(str(number), text) for number, text in enumerate(TEXTS)]
    space = " " if language == "en" else ""
    ours = {language: TemplatesConfig(system, ANSWERS[language], "\nAnswer:", space, templates)}
    return MethodUse.of("yes_no", MethodConfig(by_language=ours, **values), asked, language)


def ab_prompt(asked, seed=1, **values):
    templates = [TemplateConfig("t", "Say A or B .\nA : {a}\nB : {b}")]
    ours = {"en": TemplatesConfig(SYSTEM, ["A", "B"], "\nAnswer:", " ", templates)}
    return MethodUse.of("ab_prompt", MethodConfig(by_language=ours, seed=seed, **values), asked, "en")


def judged(asked, plan, *sentences, asked_policy=None):
    found = judge_pairs(asked, pairs(*sentences), [plan], asked_policy or policy())
    return found.rows[plan.method], found.prompts.get(plan.method)


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("tokenizer", [byte_level, lambda: byte_level(259), adds_bos], ids=["gpt2", "bytes", "llama"])
def test_yes_no_equals_a_loop_over_the_models_logits(tokenizer, language):
    tokenizer = tokenizer()
    asked = scorer(tokenizer)
    rows, told = judged(asked, yes_no(asked, language))
    answers = [(" " if language == "en" else "") + answer for answer in ANSWERS[language]]
    assert len(rows) == 2 * len(PAIRS)
    for number, text in enumerate(TEXTS):
        for pair, sides in enumerate(PAIRS):
            row = rows.iloc[number * len(PAIRS) + pair]
            assert (row["template"], row["pair_id"], row["order"]) == (str(number), str(pair), None)
            for side, sentence in zip(("good", "bad"), sides, strict=True):
                prompt = f"{SYSTEM}\n{text.replace('{sentence}', sentence, 1)}\nAnswer:"
                alone = ids(tokenizer, prompt)
                lps, lengths = [], []
                for answer in answers:
                    whole = ids(tokenizer, prompt + answer)
                    assert whole[: len(alone)] == alone
                    lps.append(nats(asked.model, [asked.begin], whole)[len(alone) :].sum())
                    lengths.append(len(whole) - len(alone))
                yes, no = map(math.exp, lps)
                assert row[f"{side}_lp"] == pytest.approx(lps[0], abs=1e-3)
                assert row[side] == pytest.approx(math.log(yes / (yes + no)), abs=1e-3)  # equation 4
                assert row[f"{side}_tokens"] == lengths[0]
    became = [tokenizer.convert_ids_to_tokens(ids(tokenizer, "Answer:" + answer)) for answer in answers]
    assert [forms[0] for forms in told["answers"].values()] == [
        tokens[len(ids(tokenizer, "Answer:")) :] for tokens in became
    ]
    assert list(told["answers"]) == answers
    assert told["example"] == f"{SYSTEM}\n{TEXTS[0].replace('{sentence}', PAIRS[0][0])}\nAnswer:"


def test_parts_of_the_prompts_read_apart_give_the_same(monkeypatch):
    asked = scorer(byte_level())
    rows, told = judged(asked, yes_no(asked))
    monkeypatch.setattr("eval.scorers.left_to_right.READ", 3)
    parted, told_parted = judged(asked, yes_no(asked))
    assert told_parted == told
    pd.testing.assert_frame_equal(parted, rows, rtol=1e-5)


def test_an_answer_is_one_token_where_the_tokenizer_makes_it_one():
    _, told = judged(asked := scorer(byte_level()), yes_no(asked))
    assert told["answers"] == {" Yes": [["ĠYes"]], " No": [["ĠNo"]]}
    _, told = judged(asked := scorer(byte_level(259)), yes_no(asked))
    assert told["answers"] == {" Yes": [["Ġ", "Y", "e", "s"]], " No": [["Ġ", "N", "o"]]}


@pytest.mark.parametrize(("language", "became"), [("en", [": Yes"]), ("zh", [":是"])])
def test_all_answers_follow_the_same_tokens_where_one_joins_the_prompts_end(language, became):
    tokenizer = joins()
    asked = scorer(tokenizer)
    sentence = "The cat"
    rows, told = judged(asked, yes_no(asked, language), (sentence, sentence))
    prompt = f"{SYSTEM}\n{TEXTS[0].replace('{sentence}', sentence)}\nAnswer:"
    space = " " if language == "en" else ""
    yes, no = (ids(tokenizer, prompt + space + answer) for answer in ANSWERS[language])
    assert len(yes) == len(ids(tokenizer, prompt))  # the answer is in the token of the prompt's last character
    start = len(yes) - 1
    assert yes[:start] == no[:start]
    lps = [nats(asked.model, [asked.begin], whole)[start:].sum() for whole in (yes, no)]
    assert rows["good_lp"].iloc[0] == pytest.approx(lps[0], abs=1e-3)
    assert rows["good"].iloc[0] == pytest.approx(lps[0] - np.logaddexp(*lps), abs=1e-3)
    assert next(iter(told["answers"].values())) == [became]
    assert rows["good"].iloc[0] == rows["bad"].iloc[0]  # equal sentences tie


def chatting(template, tokenizer=byte_level):
    tokenizer = tokenizer()
    tokenizer.chat_template = template
    return scorer(tokenizer)


def test_an_instruct_model_is_asked_through_its_chat_template_with_nothing_before_it():
    asked = chatting(CHATML)
    rows, told = judged(asked, yes_no(asked), ("The cat", "The dog"))
    prompt = f"<|user|>system\n{SYSTEM}\n<|user|>user\nIs “The cat” good ?\n<|model|>\n"
    assert told["example"] == prompt
    assert told["system_role"]
    assert list(told["answers"]) == ["Yes", "No"]
    alone = ids(asked.tokenizer, prompt)
    assert asked.tokenizer.convert_ids_to_tokens(alone[0]) == "<|user|>"
    lps = [nats(asked.model, alone[:1], ids(asked.tokenizer, prompt + answer)[1:])[len(alone) - 1 :].sum()
           for answer in ("Yes", "No")]  # fmt: skip
    assert rows["good"].iloc[0] == pytest.approx(lps[0] - np.logaddexp(*lps), abs=1e-3)


@pytest.mark.parametrize("tokenizer", [byte_level, adds_bos])
def test_a_chat_template_that_begins_with_bos_gets_no_second_one(tokenizer):
    asked = chatting("{{ bos_token }}{{ messages[0].content }} : {{ messages[1].content }} .", tokenizer)
    rows, told = judged(asked, yes_no(asked), ("The cat", "The dog"))
    bos = asked.tokenizer.bos_token
    prompt = f"{bos}{SYSTEM} : Is “The cat” good ? ."
    assert told["example"] == prompt
    whole = [ids(asked.tokenizer, prompt + answer) for answer in ("Yes", "No")]
    assert [found[:2].count(asked.begin) for found in whole] == [1, 1]
    first = len(ids(asked.tokenizer, prompt))
    while not whole[0][:first] == whole[1][:first] == ids(asked.tokenizer, prompt)[:first]:
        first -= 1
    lps = [nats(asked.model, [asked.begin], found[1:])[first - 1 :].sum() for found in whole]
    assert rows["good_lp"].iloc[0] == pytest.approx(lps[0], abs=1e-3)


@pytest.mark.parametrize("space", [" ", "\n", ""])
def test_an_answer_follows_a_chat_template_as_the_template_writes_it(space):
    """Llama 2 writes `[INST] question [/INST] answer`: the space belongs to the answer's first token."""
    asked = chatting(
        "{% for m in messages %}{% if m.role == 'assistant' %}" + repr(space).join(["{{ ", " + m.content }}"])
        + "{% else %}<|user|>{{ m.content }}<|model|>{% endif %}{% endfor %}"
    )  # fmt: skip
    rows, told = judged(asked, yes_no(asked), ("The cat", "The dog"))
    assert list(told["answers"]) == [space + "Yes", space + "No"]
    before = ids(asked.tokenizer, told["example"])
    whole = [ids(asked.tokenizer, told["example"] + space + answer) for answer in ("Yes", "No")]
    assert all(one[: len(before)] == before for one in whole)
    lps = [nats(asked.model, before[:1], one[1:])[len(before) - 1 :].sum() for one in whole]
    assert rows["good_lp"].iloc[0] == pytest.approx(lps[0], abs=1e-3)


@pytest.mark.parametrize("template", [NO_SYSTEM, LEAVES_OUT])
def test_a_system_message_that_a_chat_template_refuses_goes_into_the_users(template):
    asked = chatting(template)
    _, told = judged(asked, yes_no(asked), ("The cat", "The dog"))
    assert told["example"] == f"<|user|>{SYSTEM}\nIs “The cat” good ?<|model|>"
    assert not told["system_role"]
    _, told = judged(asked, yes_no(asked, system=None), ("The cat", "The dog"))
    assert told["example"] == "<|user|>Is “The cat” good ?<|model|>"


def test_either_way_of_asking_can_be_forced():
    asked = chatting(CHATML)
    plan = yes_no(asked, chat=False)
    assert judged(asked, plan)[1]["example"].endswith("\nAnswer:")
    assert (plan.metadata()["parameters"]["chat"], yes_no(asked).metadata()["parameters"]["chat"]) == (False, True)
    with pytest.raises(ConfigError, match=r"method\.yes_no\.chat=true: m has no chat template"):
        yes_no(scorer(byte_level()), chat=True)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: a chat template says itself what a prompt"):
        judged(asked, yes_no(asked), asked_policy=policy(context="eos"))


def test_context_stands_before_a_prompt_and_a_long_one_is_one_line():
    tokenizer = byte_level()
    asked = scorer(tokenizer)
    rows, told = judged(asked, yes_no(asked), ("The cat", "The dog"), asked_policy=policy(context="eos"))
    whole = ids(tokenizer, told["example"] + " Yes")
    assert rows["good_lp"].iloc[0] == pytest.approx(nats(asked.model, [asked.begin] * 4, whole)[-1], abs=1e-3)
    with pytest.raises(InputError, match=r"m reads 400 tokens at most"):
        judged(asked, yes_no(asked), ("猫" * 140, "The cat"))


def test_our_own_models_answer_too():
    loaded = random_model(LSTM, "char")
    asked = own_scorer(loaded, 100)
    prompts = ["The cat sleep", "The dog bark"]
    found = asked.continuations(prompts, ["s", " n"], policy())
    assert found.tokens == [[["s"]], [[" ", "n"]]]
    assert found.counts.tolist() == [[1, 2]] * 2
    for row, prompt in zip(found.logprobs, prompts, strict=True):
        for value, answer in zip(row, ["s", " n"], strict=True):
            (tokens,) = asked.score([prompt + answer], policy())
            assert value == pytest.approx(tokens.logprobs[len(prompt) :].sum(), abs=1e-5)
    with pytest.raises(RunError, match=r"m: has no tokens for the answer 'X' \(<unk>\)"):
        asked.continuations(prompts, ["s", "X"], policy())
    with pytest.raises(ConfigError, match=r"method\.yes_no\.chat=true: m has no chat template"):
        yes_no(asked, chat=True)


def test_only_the_log_probabilities_that_are_asked_for_come_back():
    asked = scorer(byte_level())
    targets = [np.asarray(ids(asked.tokenizer, text)) for text in TEXT[:3]]
    whole = asked._logprobs(targets, [0] * len(targets), policy())
    part = asked._logprobs(targets, [0, 2, 3], policy())
    for first, one, other in zip([0, 2, 3], whole, part, strict=True):
        assert np.array_equal(one[first:], other)


def test_answers_that_are_the_same_to_a_model_cannot_be_asked_for():
    asked = scorer(byte_level())
    with pytest.raises(RunError, match=r"m: the answers ' No' and ' No' are the same tokens to it"):
        asked.continuations(["The cat"], [" No", " No"], policy())


def test_a_model_that_answers_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"method=yes_no: a model of this kind cannot answer prompts"):
        yes_no(object.__new__(NgramScorer))
    masked = object.__new__(MaskedScorer)
    for method in ("yes_no", "ab_prompt", "in_template_lp", "in_template_comparative_lp", "vote_p"):
        with pytest.raises(ConfigError, match=rf"method={method}: a masked model has no .*; methods for it: pll"):
            MethodUse.of(method, compose("eval", [f"method=[{method}]"]).method[method], masked, "en")


def test_ab_prompt_asks_for_the_letter_of_the_good_sentence():
    tokenizer = byte_level()
    asked = scorer(tokenizer)
    sentences = [(f"The cat {number} sleeps", f"The cat {number} sleep") for number in range(8)]
    rows, told = judged(asked, ab_prompt(asked), *sentences)
    assert told["answers"] == {" A": [["ĠA"]], " B": [["ĠB"]]}
    assert set(rows["order"]) == {"A", "B"}
    chose_a = 0
    for row, (good, bad) in zip(rows.itertuples(), sentences, strict=True):
        a, b = (good, bad) if row.order == "A" else (bad, good)
        prompt = f"{SYSTEM}\nSay A or B .\nA : {a}\nB : {b}\nAnswer:"
        lps = {letter: nats(asked.model, [asked.begin], ids(tokenizer, f"{prompt} {letter}"))[-1] for letter in "AB"}
        other = "B" if row.order == "A" else "A"
        assert (row.good_lp, row.bad_lp) == pytest.approx((lps[row.order], lps[other]), abs=1e-3)
        assert (row.good, row.bad) == pytest.approx(
            (lps[row.order] - np.logaddexp(*lps.values()), lps[other] - np.logaddexp(*lps.values())), abs=1e-3
        )
        chose_a += lps["A"] > lps["B"]
    assert share_of_a(rows) == chose_a / len(sentences)


def test_the_share_of_a():
    rows = pairs(*[("x", "y")] * 6).assign(
        order=["A", "A", "B", "B", "A", "B"], good=[1.0, 0, 1, 0, 1, np.nan], bad=[0.0, 1, 0, 1, 1, np.nan]
    )
    # A, B, B, A, then a tie and a pair without scores, which are neither
    assert share_of_a(rows) == 2 / 4
    assert math.isnan(share_of_a(rows.assign(order=None)))


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.sets(st.integers(0, 99), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_a_pair_depends_on_nothing_but_its_name_and_the_seed(seed, chosen, random):
    all_pairs = pairs(*[("x", "y")] * 100)
    found = orders(all_pairs, seed)
    some = list(chosen)
    random.shuffle(some)
    assert orders(all_pairs.iloc[some], seed).tolist() == found[some].tolist()
    assert 20 < (found == "A").sum() < 80
    assert orders(all_pairs, seed + 1).tolist() != found.tolist()
    assert orders(all_pairs.assign(paradigm="q"), seed).tolist() != found.tolist()


def test_sure_judgements_do_not_tie():
    """Shares of 1 - 1e-20 and 1 - 1e-30 are one number in floating point; their logarithms are not."""
    asked = scorer(byte_level())
    sure = iter([-1.0, -47.0, -1.0, -70.0])
    asked._logprobs = lambda before, targets, policy, first: [np.asarray([next(sure)]) for _ in targets]
    plan = yes_no(asked, templates=["{sentence}"])
    row = judge_pairs(
        SimpleNamespace(score=scorer(byte_level()).score), pairs(("The cat", "The dog")), [plan], policy()
    )
    row = row.rows["yes_no"].iloc[0]
    assert row["good"] < row["bad"] < 0
    assert row["good"] == pytest.approx(-1.05e-20, rel=0.01)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{% for message in messages %}", r"TemplateSyntaxError"),
        ("{{ messages[0].content }}{{ raise_exception('none of it') }}", r"TemplateError: none of it"),
        ("{{ messages.__class__.__base__.__subclasses__() }}", r"SecurityError"),
        ("{% for i in range(10**12) %}x{% endfor %}", r"OverflowError"),
        ("{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}", r"is not done after 1 sec"),
        ({"tool_use": "{{ messages }}"}, r"ValueError"),
    ],
)
def test_a_chat_template_of_anyones_is_one_line(template, told, monkeypatch):
    monkeypatch.setattr("eval.scorers.chat.TEMPLATE_SECONDS", 1)
    with pytest.raises(ConfigError, match=rf"m: its chat template .*{told}"):
        yes_no(chatting(template))


@pytest.mark.parametrize("side", ["good", "bad"])
@pytest.mark.parametrize("plan", [yes_no, ab_prompt, lambda _: MethodUse("lp", MethodConfig(), None, None)])
def test_a_text_that_is_too_long_is_named_with_its_pair(plan, side):
    asked = scorer(byte_level())
    sentences = [("The cat", "The dog"), ("A cat", "A dog"), ("The dog", "A dog")]
    sentences[1] = ("猫" * 140, "A dog") if side == "good" else ("A cat", "猫" * 140)
    named = pairs(*sentences).iloc[1]
    where = rf"\(paradigm {named['paradigm']}, pair {named['pair_id']}\)"
    with pytest.raises(InputError, match=rf"m reads 400 tokens at most; '.* has 4\d\d {where}"):
        judge_pairs(asked, pairs(*sentences), [plan(asked)], policy())


def test_what_is_unknown_all_over_is_refused():
    """An own model of words of another language called all sentences equal: 0.0%."""
    ours = own_scorer(random_model(LSTM), 100)
    plan = MethodUse("lp", MethodConfig(), None, None)
    with pytest.raises(InputError, match=r"m: knows no token of any of 2 texts, such as '猫在睡'"):
        judge_pairs(ours, pairs(("猫在睡", "狗在睡")), [plan], policy())
