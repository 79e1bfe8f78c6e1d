"""Scoring of rated sentences: log-probabilities, unigrams of the run's own sample, and the command."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest

from corpora.prepare import prepare
from corpora.tokenizers import EOS
from corpora.word_counts import token_counts
from eval.methods.unigrams import Unigrams, UnigramSource
from eval.run import add_pretrained, score_run
from eval.scorers.base import TokenScores
from eval.scorers.load import load_scorer
from eval.scores.files import read_answer_file, read_items, read_scores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, StoreError
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import MASKED, MODELS, byte_level, with_random_weights
from tests.support.small_runs import study_overrides
from train.models.config import HuggingFaceConfig

TEXT = ["The cat sleeps .", "The cats sleep near a dog .", "A dog that sees the cats barks .", "Who saw the dog ?"]
TABLE = (
    "good,bad,good_rating,bad_rating\n"
    "The cat sleeps .,The cat sleep .,0.9,-0.8\n"
    "The dog barks .,The dog bark .,0.8,-0.7\n"
    "A quokka sleeps .,A quokka sleep .,0.7,-0.9\n"
)


@pytest.fixture
def configure(tmp_path):
    """Write a table and a text; a function from overrides to the configuration of a run."""
    (tmp_path / "mine.csv").write_text(TABLE)
    text = "\n\n".join("\n".join(TEXT[i // 4**k % 4] for k in range(5)) for i in range(300))
    (tmp_path / "text.txt").write_text(text + "\n")
    columns = "{sentence:null,rating:null,good:good,bad:bad,good_rating:good_rating,bad_rating:bad_rating}"
    paths = [
        *study_overrides(tmp_path), "corpus=local", "corpus.name=mine", f"corpus.path={tmp_path}/text.txt",
        f"paths.store={tmp_path}/store", "sample.size=1003", "trainer.progress=false",
    ]  # fmt: skip
    table = ["benchmark=ratings", f"benchmark.path={tmp_path}/mine.csv", f"benchmark.columns={columns}"]
    return lambda *overrides, of=table: compose("eval", [*paths, *of, *overrides])


def trained(config, model=LSTM):
    """Return a run as training leaves it, with a sample of the text; its model has random weights."""
    loaded = random_model(model)
    run = simulated_run(config, loaded)
    corpus = prepare(config)
    run.update_manifest(corpus=corpus.manifest)
    return run, loaded, corpus


def sentences_of(corpus):
    """Return the sentences of a run's sample, the last of them cut."""
    return [
        *corpus.text.sentences(corpus.drawn.indices),
        *(corpus.text.sentence(index)[:end] for index, end in corpus.drawn.cuts),
    ]


def by_hand(texts, encode, sentence):
    """Return the unigram log-probability of a sentence's tokens, and how many of them the texts lack."""
    counts = Counter(token for text in texts for token in encode(text))
    tokens = encode(sentence)
    logprob = sum(math.log(max(counts[token], 0.5) / counts.total()) for token in tokens)
    return logprob, sum(counts[token] == 0 for token in tokens)


@pytest.mark.parametrize("model", [LSTM, TXL], ids=["lstm", "txl"])
def test_a_trained_run_is_scored(configure, model, capsys):
    config = configure()
    run, loaded, corpus = trained(config, model)
    score_run(run, config)
    assert "6 sentences in 3 pairs" in capsys.readouterr().out
    rows, metadata = read_answer_file(run.scores("ratings"), "sentences")
    digest = corpus.drawn.digest
    assert metadata["parameters"] == {"unigrams": {"of": "sample", "digest": digest, "unseen": 0.5}}
    (score,) = load_scorer(run).score(["A quokka sleep ."], config.policy)
    row = rows[rows["sentence"] == "A quokka sleep ."].iloc[0]
    assert row["lp"] == pytest.approx(score.logprobs.sum())
    assert (row["tokens"], row["words"], row["chars"], row["unk"]) == (5, 4, 13, 1)
    encode = loaded.tokenizer.encode
    expected = by_hand(sentences_of(corpus), lambda text: [*encode(text), EOS], row["sentence"])
    assert (row["unigram_lp"], row["unseen"]) == pytest.approx(expected)


def test_a_masked_model_has_the_unigrams_of_its_tokens(configure):
    """Its ids are higher than those of the text, as they begin with padding and mask."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = configure()
    model = HuggingFaceConfig(name="network", architecture="bert", objective="mlm", config=sizes)
    run, loaded, corpus = trained(config, model)
    score_run(run, config)
    for row in read_answer_file(run.scores("ratings"), "sentences")[0].itertuples():
        expected, _ = by_hand(sentences_of(corpus), loaded.tokenizer.encode, row.sentence)
        assert row.unigram_lp == pytest.approx(expected)


BARKS = ["filter.name=barks", "filter.regex=barks", "ablate.action=remove"]


@pytest.mark.parametrize("overrides", [[], BARKS, ["sample.unit=document"], ["sample.size=50"]])
def test_counts_are_those_of_the_tokens_that_a_model_reads(configure, overrides):
    """With a token store, and of a sample that is so small that it is encoded alone."""
    config = configure("tokenizer=word", *overrides)
    corpus = prepare(config)
    expected = np.bincount(corpus.sample().tokens, minlength=len(corpus.tokenizer))
    described, manifest = dataclasses.asdict(config), {"corpus": corpus.manifest}
    store = corpus.text.folder.parents[1]
    assert token_counts(described, manifest, store, corpus.tokenizer).tolist() == expected.tolist()
    with pytest.raises(StoreError, match="its sample has another digest"):
        token_counts(described | {"seed": 2}, manifest, store, corpus.tokenizer)


def test_unseen_tokens_and_skipped_ones():
    ids, unk = np.asarray([2, 3, 9]), np.asarray([False, True, False])
    score = TokenScores(np.zeros(3), np.zeros((3, 2), np.int32), unk, ids)
    unigrams = Unigrams(np.asarray([1, 0, 6, 3]), 0.5)
    (total,), (lacking,) = unigrams.sums([score], skip_unk=False)
    assert total == pytest.approx(np.log([0.6, 0.3, 0.05]).sum())
    assert lacking == 1
    (skipped,), _ = unigrams.sums([score], skip_unk=True)
    assert skipped == pytest.approx(np.log([0.6, 0.05]).sum())


def test_a_run_without_its_text_has_no_slor_and_says_why(configure, capsys):
    config = configure()
    run, *_ = trained(config)
    elsewhere = configure("paths.store=nowhere")
    score_run(run, elsewhere)
    printed = capsys.readouterr().out
    assert "norm_lp, slor and morcela are left out" in printed
    assert read_answer_file(run.scores("ratings"), "sentences")[0]["unigram_lp"].isna().all()
    score_run(run, config)  # with the text there are more scores
    assert read_answer_file(run.scores("ratings"), "sentences")[0]["unigram_lp"].notna().all()


def test_scores_depend_on_how_unseen_tokens_count(configure):
    run, *_ = trained(configure())
    score_run(run, configure())
    path = run.scores("ratings") / "sentences.parquet"
    first = path.stat().st_mtime_ns
    score_run(run, configure("unigrams.unseen=1"))
    assert path.stat().st_mtime_ns != first


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_pretrained_model_counts_a_text(configure, tmp_path, kind):
    network, tokenizer = (MODELS["gpt2"], byte_level) if kind == "causal" else MASKED["roberta"]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    network.save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    chosen = [f"model=hf_{kind}", f"model.path={tmp_path}/{kind}"]
    config = configure(*chosen)
    run, scorer = add_pretrained(config)
    score_run(run, config, scorer)
    rows, metadata = read_answer_file(run.scores("ratings"), "sentences")
    assert rows["unigram_lp"].isna().all()
    assert "unigrams.text=FILE" in metadata["parameters"]["unigrams"]["missing"]
    with pytest.raises(InputError, match=r"unigrams\.text=none\.txt: this file"):
        score_run(run, configure(*chosen, "unigrams.text=none.txt"), scorer)
    score_run(run, configure(*chosen, f"unigrams.text={tmp_path}/text.txt"), scorer)
    rows, metadata = read_answer_file(run.scores("ratings"), "sentences")
    assert metadata["parameters"]["unigrams"]["of"] == "text.txt"

    def encode(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    lines = (tmp_path / "text.txt").read_text().splitlines()
    assert rows["unigram_lp"][0] == pytest.approx(by_hand(lines, encode, rows["sentence"][0])[0])
    assert rows["tokens"][0] == len(encode(rows["sentence"][0]))


def test_slor_and_morcela_judge_pairs(configure):
    toy = ["benchmark=toy", "benchmark.per_paradigm=2"]
    config = configure("method=[lp,slor,morcela]", "method.morcela.beta=0.5", "method.morcela.gamma=2", of=toy)
    run, *_ = trained(config)
    score_run(run, config)
    (folder,) = run.scores("").iterdir()
    lp, slor, morcela = (read_scores(folder / f"{name}.parquet")[0] for name in ("lp", "slor", "morcela"))
    items = read_items(folder)[0]
    scorer = load_scorer(run)
    unigrams = UnigramSource.of(run, config).count(scorer)
    u, _ = unigrams.sums(scorer.score(items["good"].tolist(), config.policy), skip_unk=False)
    n, of_sentence = lp["good_tokens"].to_numpy(), lp["good_lp"].to_numpy()
    assert slor["good"].to_numpy() == pytest.approx((of_sentence - u) / n)
    assert morcela["good"].to_numpy() == pytest.approx((of_sentence - 0.5 * u + 2) / n)
    with pytest.raises(ConfigError, match=r"method\.morcela\.beta, method\.morcela\.gamma: .*no default"):
        score_run(run, configure("method=[morcela]", "policy.unk=skip", of=toy))
    with pytest.raises(ConfigError, match=r"method=slor: .* no unigram probabilities .* the text of its sample .* in"):
        score_run(run, configure("method=[slor]", "paths.store=nowhere", of=toy))
    score_run(run, configure("method=[lp,slor]", "paths.store=nowhere", "policy.unk=skip", of=toy))
    assert not (run.scores(f"{folder.name}+unk-skip") / "slor.parquet").exists()
