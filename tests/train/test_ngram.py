"""N-gram models against Kneser-Ney smoothing written out, KenLM's own sums, and the errors of lmplz."""

import math
import random
import stat
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import train.lmplz
from corpora.prepare import prepare
from corpora.tokenizers import EOS, UNK, ListTokenizer
from eval.scorers.causal import CausalScorer
from eval.scorers.load import load_scorer
from pairscale.command.compose import compose
from pairscale.command.errors import one_line_errors
from pairscale.errors import ConfigError, RunError
from tests.support.small_pretrained import policy
from tests.support.small_runs import trained
from tests.train.kneser_ney import KneserNey
from train.config import run_id
from train.estimate import PROCESS_BYTES, estimate
from train.ngram import kenlm_words, load_ngram
from train.plan import Plan
from train.runs.folder import RunFolder

WORDS = ["the", "a", "cat", "dog", "bird", "sees", "hears", "near", "that", "sleeps", "barks", "old", "small", "of"]


def sentences(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return [" ".join(draw.choices(WORDS, weights, k=draw.randrange(2, 8))) for _ in range(count)]


@pytest.fixture
def configure(tmp_path):
    """Return a function that configures a run on a small text; no training sentence has "zebra" or "gnu"."""
    lines = [text + ("\n" if n % 10 == 9 else "") for n, text in enumerate(sentences(600, 0))]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    folders = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs", f"corpus.path={tmp_path}/text.txt"]
    fixed = ["corpus=local", "corpus.split.valid=0.1", "model=ngram", "sample.size=1k", "study=s"]
    quiet = ["trainer.progress=false", "trainer.accelerator=cpu", "model.lmplz_memory=50M"]

    def configure(*overrides: str):
        return compose("eval", [*fixed, *quiet, *folders, *overrides])

    return configure


def train_model(config) -> tuple[RunFolder, CausalScorer, list[list[str]]]:
    """Return the run, its scorer, and the sample as lists of tokens with <unk> for unknown words."""
    run = trained(config)
    scorer = load_scorer(run)
    texts: list[list[str]] = [[]]
    for index in prepare(config).sample().tokens.tolist() if config.model.vocabulary == "closed" else []:
        if index == EOS:
            texts.append([])
        else:
            texts[-1].append(scorer.tokens.tokenizer.token(index))
    return run, scorer, texts[:-1]


@pytest.mark.parametrize("order", [2, 5])
def test_log_probabilities_equal_kneser_ney_written_out(configure, lmplz, order):
    """Some words are unknown to the tokenizer, and one known word is in no sentence of the sample."""
    few = ["sample.size=700", "tokenizer.vocab_size=12"]
    _, scorer, texts = train_model(configure(f"model.order={order}", *few))
    reference = KneserNey(texts, order, vocabulary=len(scorer.tokens.tokenizer))
    assert "<unk>" in {word for text in texts for word in text}
    for sentence in ["the old cat sees a dog", "of zebra near near", "barks", *sentences(5, 9)]:
        (scored,) = scorer.score([sentence], policy())
        tokens = [scorer.tokens.tokenizer.token(index) for index in scorer.tokens.tokenizer.encode(sentence)]
        assert scored.logprobs == pytest.approx(reference.logprobs(tokens), abs=2e-5)


@pytest.mark.parametrize(
    "overrides", [[], ["tokenizer.vocab_size=12"], ["tokenizer=unigram", "tokenizer.vocab_size=290"]]
)
def test_probabilities_of_a_vocabulary_sum_to_one(configure, lmplz, overrides):
    run = trained(configure("sample.size=200", "corpus.split.valid=0.3", *overrides))
    ngram = load_ngram(run.model)
    for history in ([], [2], [3, 2, 4], [UNK]):
        total = sum(math.exp(ngram.logprobs([*history, index])[-1]) for index in range(len(ngram.tokenizer)))
        # Words missing from the sample share the rest of the smoothing evenly; if none is, KenLM keeps a little.
        assert total == pytest.approx(1, abs=0.01 if overrides else 1e-5)


def test_next_words_are_ranked_by_kneser_ney_over_the_vocabulary(configure, lmplz):
    """Ranks and most probable words come from scoring each word of the vocabulary after the context."""
    _, scorer, texts = train_model(configure("model.order=4", "sample.size=700"))
    reference = KneserNey(texts, 4, vocabulary=len(scorer.tokens.tokenizer))
    contexts, candidates = ["the old cat", "a dog", "the small cat"], [["sees", "zebra"], ["barks"], ["sees"]]
    answers = scorer.next_words(contexts, candidates, 3, policy())
    for context, (word, *_), answer in zip(contexts, candidates, answers, strict=True):
        known = {word: reference.logprobs([*context.split(), word])[-2] for word in WORDS}
        best = sorted(known, key=known.get, reverse=True)
        assert answer.logprobs[0] == pytest.approx(known[word], abs=2e-5)
        assert answer.ranks[0] == best.index(word) + 1
        assert answer.words == best[:3]
        assert answer.word_logprobs == pytest.approx([known[word] for word in best[:3]], abs=2e-5)
    assert np.isnan(answers[0].logprobs[1])  # <unk> is no word
    assert answers[0].ranks[1] == 0


def test_a_score_has_spans_unknown_words_and_the_end(configure, lmplz):
    _, scorer, _ = train_model(configure())
    first, second, empty = scorer.score(["the zebra sleeps", "the gnu sleeps", ""], policy())
    assert first.spans.tolist() == [[0, 3], [4, 9], [10, 16], [16, 16]]
    assert first.unk.tolist() == [False, True, False, False]
    assert np.array_equal(first.logprobs, second.logprobs), "one string to the model: a tie"
    assert len(empty.logprobs) == 1
    short, none = scorer.score(["the zebra sleeps", ""], policy(score_eos=False))
    assert np.array_equal(short.logprobs, first.logprobs[:3])
    assert none.spans.shape == (0, 2)


def test_text_before_the_begin_symbol_does_not_change_scores(configure, lmplz):
    """KenLM's state after the context, its end and <s> is that of the beginning of a sentence."""
    _, scorer, _ = train_model(configure())
    plain, *others = (
        scorer.score(["the cat sleeps"], contexts)[0].logprobs
        for contexts in (policy(), policy(context="eos"), policy(context="text", context_text="the old cat"))
    )
    assert all(np.array_equal(plain, other) for other in others)


def test_the_run_folder_has_the_usual_files(configure, lmplz):
    config = configure("recipe.validation_words=200")
    run, scorer, _ = train_model(config)
    manifest = run.read_manifest()
    assert (manifest["status"], manifest["sample_words"], manifest["words_seen"]) == ("done", 1000, 1000)
    assert manifest["parameters"] == sum(manifest["ngrams"])
    assert len(manifest["ngrams"]) == 5
    pruned = trained(configure("recipe.validation_words=200", "model.prune=[0,0,1]")).read_manifest()["ngrams"]
    assert pruned[:2] == manifest["ngrams"][:2]
    assert 0 < pruned[2] < manifest["ngrams"][2]
    assert not list(run.path.glob("estimation*"))
    held_out = prepare(config).held_out("valid", 200)
    tokens = held_out.tokens.tolist()
    nats, start = 0.0, 0
    for at, token in enumerate(tokens):
        if token == EOS:
            nats -= sum(scorer.model.ngram.logprobs(tokens[start : at + 1]))
            start = at + 1
    (row,) = pd.read_csv(run.metrics).to_dict("records")
    assert row["valid_ppl"] == pytest.approx(math.exp(nats / held_out.words), rel=1e-9)
    before = run.model.ngrams.stat().st_mtime_ns
    trained(config)
    assert run.model.ngrams.stat().st_mtime_ns == before
    again = trained(configure("recipe.validation_words=200", "study=other", "model.lmplz_memory=200M"))
    assert again.path.name == run.path.name
    assert load_scorer(again).digest == scorer.digest


def test_keys_of_neural_training_do_not_change_the_run(configure):
    plain = run_id(configure())
    assert run_id(configure("recipe.budget.epochs=7", "recipe.batch=9", "recipe.lr=3")) == plain
    assert configure("recipe.budget.epochs=7").recipe.budget.epochs == 1
    for override in ("model.order=3", "model.prune=[0,1]", "model.vocabulary=open", "model.discount_fallback=null"):
        assert run_id(configure(override)) != plain


def test_an_open_vocabulary_holds_every_word_of_the_sample(configure, lmplz):
    few = ["tokenizer.vocab_size=5"]
    closed, opened = (train_model(configure(f"model.vocabulary={name}", *few))[1] for name in ("closed", "open"))
    sentence = "the small bird hears a zebra"
    assert closed.score([sentence], policy())[0].unk.sum() > 1
    assert opened.score([sentence], policy())[0].unk.tolist() == [*[False] * 5, True, False]
    with pytest.raises(ConfigError, match=r"model\.vocabulary=open with tokenizer=unigram"):
        trained(configure("model.vocabulary=open", "tokenizer=unigram"))


def test_words_that_are_special_to_kenlm_are_renamed(configure):
    tokens = ["a", " ", "\u3000", "\xa0", "<s>", "</s>", "<unk>", "<UNK>", "\\unk", "\\61", "\t", "\\2-grams:", "é"]
    words = kenlm_words(ListTokenizer(configure("tokenizer=char").tokenizer, tokens))
    assert words[EOS] == "</s>"
    assert words[2:] == ["a", "\\20", "\u3000", "\xa0", *words[6:14], "é"]
    assert len(set(words)) == len(words)
    assert all(len(word.encode().split()) == 1 for word in words)
    assert not {"<s>", "<unk>", "<UNK>", "</s>"}.intersection(words[1:])


# Errors, one line each


def test_without_lmplz_the_message_says_how_to_get_it(configure, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(train.lmplz, "build_folder", lambda: tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"nowhere\. Run `python -m train.lmplz`"):
        trained(configure())
    with pytest.raises(ConfigError, match="not at model"):
        trained(configure("model.lmplz=/no/lmplz"))
    program(tmp_path / "lmplz", "exit 0")
    with pytest.raises(ConfigError, match="build_binary is neither"):
        trained(configure())
    assert not RunFolder.of(configure()).path.exists()  # nothing was done


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


THREW = "/x.cc:1 in void f() threw E because `n == 0'."


@pytest.mark.parametrize(
    ("output", "end", "message"),
    [
        (f"{THREW}\nNo  space left.\nTry more.", "exit 1", "No space left."),
        ("=== 1/5 Counting", "kill -9 $$", "ended by signal 9, probably because it ran out of memory"),
        ("", "kill -7 $$", "ended by signal 7, probably because the disk is full"),
        ("", "exit 3", "exit code 3"),
    ],
)
def test_the_reason_of_a_failed_lmplz_is_a_message_of_one_line(configure, tmp_path, output, end, message):
    (tmp_path / "output").write_text(output)
    path = program(tmp_path / "bin" / "lmplz", f"cat {tmp_path}/output >&2; {end}")
    program(tmp_path / "bin" / "build_binary", "exit 0")
    config = configure(f"model.lmplz={path}")
    with pytest.raises(RunError, match=rf"^lmplz failed: {message}[^\n]*$") as raised:
        trained(config)
    assert RunFolder.of(config).read_manifest()["reason"] == f"RunError: {raised.value}"
    assert not list(RunFolder.of(config).path.glob("estimation*"))


def test_a_refusal_of_the_real_lmplz_is_a_message_of_one_line(configure, lmplz):
    with pytest.raises(RunError, match=r"^lmplz failed: [^\n]*discount[^\n]*$"):
        trained(configure("sample.size=20", "model.discount_fallback=null"))
    with pytest.raises(RunError, match=r"^lmplz failed: [^\n]*(memory|block)[^\n]*$"):
        trained(configure("model.lmplz_memory=1K"))
    assert 5 in trained(configure("sample.size=20")).read_manifest()["fallback_discounts"]


def test_a_damaged_model_is_a_message_of_one_line(configure, lmplz):
    run = trained(configure())
    whole = run.model.ngrams.read_bytes()
    description = run.model.description.read_text(encoding="utf-8")
    shorter = description.replace(sha256(whole).hexdigest(), sha256(whole[:-1000]).hexdigest())
    for ngrams, described, message in (
        (whole[:-1000], description, r"this file was cut short or changed .*, but pairscale\.json says"),
        (whole[:-1000], shorter, "KenLM can't read this file"),
        (whole, description.replace('"order": 5', '"order": 4'), "this n-gram model has order 5 instead of 4"),
        (None, description, "this file does not exist"),
    ):
        run.model.ngrams.unlink()
        if ngrams is not None:
            run.model.ngrams.write_bytes(ngrams)
        run.model.description.write_text(described, encoding="utf-8")
        with pytest.raises(RunError, match=rf"model\.kenlm: {message}[^\n]*$"):
            load_scorer(run)


# The commands


def test_building_lmplz_without_a_registry_is_a_message_of_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train.lmplz, "build_folder", lambda: tmp_path / "kenlm")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(SystemExit, match="2"), one_line_errors("pairscale lmplz"):
        train.lmplz.main()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("pairscale lmplz: pip download failed: ERROR: ")
    assert "kenlm==0.3.0" in last
    for name in train.lmplz.PROGRAMS:
        program(tmp_path / "kenlm" / name, "exit 0")
    train.lmplz.main()
    assert "are already in" in capsys.readouterr().err


def test_a_dry_run_estimates_time_and_memory(configure, capsys):
    config = configure("sample.size=1k", "model.lmplz_memory=512M")
    resources = estimate(config)
    assert (resources.words, resources.words_seen, resources.done) == (1000, 1000, False)
    assert resources.memory_bytes == 512 * 2**20 + PROCESS_BYTES
    assert 0 < resources.seconds < 60
    plan = Plan()
    plan.add(resources)
    plan.show()
    assert "n-gram models are upper limits" in capsys.readouterr().out
