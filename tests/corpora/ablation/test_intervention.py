"""Interventions on a small annotated text: what samples lack, keep or read in another form, and what is told of it."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpora.annotate.run import annotate
from corpora.config import CorporaConfig
from corpora.prepare import Corpus, prepare
from corpora.run import prepare_corpus
from corpora.word_counts import sample_again
from corpora.words import count_words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, StoreError
from tests.support.commands import run_command

THERE = """\
# text = There is {n} fox{s} here.
1	There	there	PRON	EX	_	2	expl	_	_
2	is	be	VERB	VBZ	_	0	root	_	_
3	{n}	{n}	NUM	CD	NumType=Card	4	nummod	_	_
4	fox{s}	fox	NOUN	NN	Number=Sing	2	nsubj	_	_
5	here	here	ADV	RB	_	2	advmod	_	SpaceAfter=No
6	.	.	PUNCT	.	_	2	punct	_	_
"""
OTHER = """\
# text = {this} fox{s} saw {n} dogs.
1	{this}	this	DET	DT	Number=Sing	2	det	_	_
2	fox{s}	fox	NOUN	NN	Number=Sing	3	nsubj	_	_
3	saw	see	VERB	VBD	_	0	root	_	_
4	{n}	{n}	NUM	CD	NumType=Card	5	nummod	_	_
5	dogs	dog	NOUN	NNS	Number=Plur	3	obj	_	SpaceAfter=No
6	.	.	PUNCT	.	_	3	punct	_	_
"""
SENTENCES = 100  # of the train split: each fourth has an existential, each eighth a demonstrative
HELD_OUT = 2  # sentences that come before them
THERES = set(range(HELD_OUT, HELD_OUT + SENTENCES, 4))


def conllu() -> str:
    blocks = []
    for n in range(SENTENCES):
        this = "This" if n % 8 == 1 else "A"
        blocks.append((THERE if n % 4 == 0 else OTHER).format(n=n, s="es" * (n % 3), this=this))
    return "\n".join(blocks) + "\n"


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> list[str]:
    """Return the words of a command line for an annotated text of SENTENCES sentences."""
    folder = tmp_path_factory.mktemp("ablation")
    text = folder / "text"
    text.mkdir()
    (text / "a-train.conllu").write_text(conllu(), encoding="utf-8")
    for split in ("dev", "test"):
        (text / f"a-{split}.conllu").write_text(OTHER.format(n=1, s="", this="A") + "\n", encoding="utf-8")
    options = ["corpus=conllu", f"corpus.path={text}", f"paths.store={folder}/store"]
    annotate(compose("annotate", [*options, "parser=conllu", "processes=1"]))
    return [*options, "sample.size=50"]


def corpus_of(words: list[str], action: str, *overrides: str, construction: str = "existential_there") -> Corpus:
    """Return the corpus of an ablation, with a tokenizer that keeps each word of the text."""
    options = [f"filter={construction}", f"ablate.action={action}", "tokenizer=word", "tokenizer.vocab_size=null"]
    config = compose("corpora", [*words, *options, *overrides])
    assert isinstance(config, CorporaConfig)
    return prepare(config)


def read(corpus: Corpus) -> list[str]:
    return list(corpus.read.sentences(corpus.drawn.indices))


def test_a_sample_lacks_the_construction_or_has_nothing_else(words):
    assert not [sentence for sentence in read(corpus_of(words, "remove")) if "There" in sentence]
    assert all(sentence.startswith("There") for sentence in read(corpus_of(words, "keep_only")))
    assert any(sentence.startswith("There") for sentence in read(corpus_of(words, "control")))


@pytest.mark.parametrize("action", ["none", "remove", "keep_only", "control"])
def test_a_sample_has_exactly_its_words(words, action):
    corpus = corpus_of(words, action)
    cut = [corpus.read.sentence(last)[:end] for last, end in corpus.drawn.cuts]
    assert corpus.drawn.words == sum(count_words(sentence, "treebank") for sentence in [*read(corpus), *cut]) == 50


def test_samples_of_treatment_and_control_are_of_one_permutation(words):
    """The sentences that neither leaves out come in the same order."""
    full, treated, control = (corpus_of(words, action, "sample.size=200") for action in ("none", "remove", "control"))
    order = full.drawn.indices.tolist()
    for corpus in (treated, control):
        skipped = set(corpus.intervention.skipped.tolist())
        rest = [index for index in order if index not in skipped]
        assert corpus.drawn.indices.tolist()[: len(rest)] == rest


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 25), st.integers(0, 3))
@pytest.mark.slow
def test_a_dose_keeps_its_share_and_smaller_doses_keep_parts_of_larger_ones(words, kept, seed):
    options = (f"ablate.seed={seed}",)
    one = corpus_of(words, "remove", f"ablate.dose={kept}/25", *options).intervention
    more = corpus_of(words, "remove", f"ablate.dose={min(24, kept + 1)}/25", *options).intervention
    assert (one is None) == (kept == 25)
    if one is not None and more is not None:
        assert len(one.skipped) == 25 - kept
        assert set(more.skipped) <= set(one.skipped) <= THERES
        control = corpus_of(words, "control", f"ablate.dose={kept}/25", *options).intervention
        assert len(control.skipped) == 25 - kept
        assert not set(control.skipped) & THERES


def test_rewritten_sentences_are_read_in_place_of_the_others(words):
    corpus = corpus_of(words, "replace", "sample.size=100", construction="determiner_noun")
    full = corpus_of(words, "none", "sample.size=100")
    assert [sentence.replace("The ", "This ") for sentence in read(corpus)] == read(full)
    assert any(sentence.startswith("The fox") for sentence in read(corpus))
    # The tokens of the store, and of the new sentences, are those of each sentence alone.
    corpus.prepare_store()
    assert corpus.store is not None
    ids = corpus.tokenizer.encode_batch(read(corpus))[0].tolist()
    assert corpus.sample().tokens.tolist()[: len(ids)] == ids
    encoded_alone = corpus_of(words, "replace", "sample.size=100", construction="determiner_noun")
    assert encoded_alone.sample().tokens.tolist() == corpus.sample().tokens.tolist()


def test_the_manifest_counts_what_was_removed(words):
    corpus = corpus_of(words, "remove", "ablate.dose=1/5", "sample.size=480")
    sizes = corpus.manifest["ablation"]
    assert (sizes["filter"], sizes["action"], sizes["dose"]) == ("existential_there", "remove", "1/5")
    assert sizes["matching"] == {"sentences": 25, "words": 25 * 6}
    assert (sizes["sentences"], sizes["words"]) == (20, 20 * 6)
    assert (sizes["of_sentences"], sizes["of_words"]) == (SENTENCES, SENTENCES * 6)
    # The sample is all that is left: it has the dose.
    assert sizes["sample"]["matching"] == 5
    assert sizes["sample"]["sentences"] <= 20
    assert sizes["sample"]["rewritten"] == 0
    balance = corpus_of(words, "control").manifest["ablation"]["balance"]
    assert balance["removed"]["words"] == balance["control"]["words"] == 6
    assert balance["same_class"] == 0  # each number and each form of "fox" is rare in its own way


@pytest.mark.parametrize("action", ["none", "remove", "replace"])
def test_the_sample_of_a_run_is_drawn_again(words, action):
    """By the analysis, from the run's configuration and manifest."""
    corpus = corpus_of(words, action, "ablate.dose=1/5", construction="determiner_noun")
    config = dataclasses.asdict(corpus.config.of_run())
    store = corpus.text.folder.parents[1]
    again = sample_again(config, {"corpus": corpus.manifest}, store)
    assert again.drawn.digest == corpus.drawn.digest
    assert list(again.read.sentences(again.drawn.indices)) == read(corpus)
    with pytest.raises(StoreError, match="its sample has another digest"):
        sample_again(config, {"corpus": {"sample": {"digest": "0" * 64}}}, store)
    if action != "none":
        config["ablate"]["layer"] = "spacy"
        with pytest.raises(StoreError, match=r"ablate\.layer=spacy: .* has no such annotation"):
            sample_again(config, None, store)


def test_equal_ablations_have_equal_digests_and_others_do_not(words):
    def digest(*overrides: str) -> str:
        return str(corpus_of(words, "control", *overrides).intervention.digest)

    assert digest() == digest("sample.size=60") != digest("seed=2") != digest("ablate.dose=1/5")


def test_the_command_says_and_lists_what_is_left_out(words, tmp_path):
    listing = tmp_path / "removed.csv"
    options = ["filter=existential_there", "ablate.action=control", f"ablate.listing={listing}", "tokenizer=word"]
    done = run_command("corpora", *words, *options)
    assert done.returncode == 0
    assert "matches 25 of 100 training sentences (annotation conllu). They contain 150 of 600 words." in done.stdout
    assert "leaves out 25 sentences and rewrites 0 (150 words in total)" in done.stdout
    rows = list(csv.DictReader(listing.read_text(encoding="utf-8").splitlines()))
    assert [row["action"] for row in rows] == ["left out"] * 25
    corpus = corpus_of(words, "control")
    assert [int(row["line"]) - 1 for row in rows] == corpus.intervention.skipped.tolist()
    text = (Path(corpus.text.folder) / "text.txt").read_text(encoding="utf-8").splitlines()
    assert all(text[int(row["line"]) - 1] == row["sentence"] for row in rows)
    assert {int(row["control_of"]) - 1 for row in rows} == THERES


@pytest.mark.parametrize("others", [[], ["filter=existential_there"]])
def test_a_list_without_an_ablation_is_refused(tmp_path, others):
    overrides = ["corpus=toy", f"paths.store={tmp_path}/store", f"ablate.listing={tmp_path}/removed.csv", *others]
    with pytest.raises(
        ConfigError, match=r"ablate\.listing=.* there is nothing to list, .* Add .*ablate\.action=remove"
    ):
        prepare_corpus(compose("corpora", overrides))
    assert list(tmp_path.iterdir()) == []


def test_a_rewriting_is_listed_with_both_forms(words, tmp_path):
    listing = tmp_path / "rewritten.csv"
    options = ["filter=determiner_noun", "ablate.action=replace", f"ablate.listing={listing}", "tokenizer=word"]
    assert run_command("corpora", *words, *options).returncode == 0
    rows = list(csv.DictReader(listing.read_text(encoding="utf-8").splitlines()))
    assert {row["action"] for row in rows} == {"rewritten"}
    assert [row["rewritten"] for row in rows] == [row["sentence"].replace("This", "The") for row in rows]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["filter=npi_only", "ablate.action=remove"],
            "filter=npi_only: this filter doesn't match any sentence of the train split",
        ),
        (
            ["filter=existential_there", "ablate.action=replace"],
            "this filter has no rules to rewrite a sentence. Add `rewrite` to it (see conf/filter), or",
        ),
        (
            ["filter=existential_there", "ablate.action=remove", "ablate.layer=spacy"],
            "ablate.layer=spacy: conllu has no such annotation",
        ),
        (["ablate.action=remove"], "no construction is chosen. Add filter=NAME"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(words, overrides, message):
    done = run_command("corpora", *words, "tokenizer=word", *overrides)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_sample_larger_than_what_is_left_is_told(words):
    message = r"train split of conllu has only 150 words without .* ablate\.action=keep_only leaves out\."
    with pytest.raises(ConfigError, match=message):
        _ = corpus_of(words, "keep_only", "sample.size=200").drawn


def test_a_text_without_annotation_is_told(words, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no annotation in .*python -m corpora.annotate and the same"):
        _ = corpus_of([*words, f"paths.store={tmp_path}"], "remove").intervention


def test_controls_of_one_seed_are_the_same_in_every_order_of_runs(words, tmp_path):
    """What a run removes follows from its configuration alone, not from what other runs left in the store."""
    again = [*words, f"paths.store={tmp_path}"]
    layer = [word for word in again if not word.startswith("sample")]
    annotate(compose("annotate", [*layer, "parser=conllu", "processes=1"]))
    of_seeds = [corpus_of(again, "control", f"seed={seed}").intervention.skipped.tolist() for seed in (2, 1)]
    assert of_seeds[::-1] == [
        corpus_of(words, "control", f"seed={seed}").intervention.skipped.tolist() for seed in (1, 2)
    ]
    assert np.not_equal(*of_seeds).any()
