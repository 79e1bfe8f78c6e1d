"""Schemas of score files (eval/scores/files.py): the columns of each kind, and the metadata."""

from typing import Any, NotRequired, TypedDict

import pyarrow as pa

from pairscale.schema import Count, Positive

SIDES = ("good", "bad")
SCORES = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("template", pa.string()),  # null: the method has no templates
        ("trial", pa.int32()),  # of votes, from 1; null: the method has no trials
        *((side, pa.float64()) for side in SIDES),  # the method's own score: the higher one wins
        # Of what is scored: the sentence, a filled template, or the answer to a prompt; null for votes.
        *((f"{side}_lp", pa.float64()) for side in SIDES),  # nats
        *((f"{side}_tokens", pa.int32()) for side in SIDES),  # scored tokens, <eos> among them where it is scored
        # Of the sentence alone, whatever the method reads.
        *((f"{side}_words", pa.int32()) for side in SIDES),  # of the corpus's reference tokenizer
        *((f"{side}_chars", pa.int32()) for side in SIDES),  # that are not white space
        *((f"{side}_unk", pa.int32()) for side in SIDES),  # tokens that were <unk>, skipped ones too
        ("crit_unk", pa.int32()),  # <unk> among the tokens in which the two sentences differ, both sides together
        ("order", pa.string()),  # null, or A/B: where a prompt put the good sentence
    ]
)
ITEMS = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("phenomenon", pa.string()),
        ("field", pa.string()),  # null where the benchmark has no fields
        ("good", pa.string()),
        ("bad", pa.string()),
        ("lexically_identical", pa.bool_()),  # null where the benchmark does not say, as all below
        ("one_prefix_method", pa.bool_()),
        ("two_prefix_method", pa.bool_()),
        *((f"one_prefix_{part}", pa.string()) for part in ("prefix", "word_good", "word_bad")),
        *((f"two_prefix_{part}", pa.string()) for part in ("prefix_good", "prefix_bad", "word")),
    ]
)
TOKENS = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("side", pa.string()),  # good | bad
        ("position", pa.int32()),
        ("start", pa.int32()),  # character offsets into the sentence; both its length for a scored <eos>
        ("end", pa.int32()),
        ("logprob", pa.float64()),  # nats
        ("unk", pa.bool_()),
    ]
)
CLOZE = pa.schema(
    [
        ("item", pa.string()),
        ("condition", pa.string()),  # how the context is changed, or which of an item's contexts it is
        ("trial", pa.int32()),  # of a condition that is drawn at random; else null
        ("group", pa.string()),  # of items: cprag constraint H or L, neg licensing Y or N; else null
        ("context", pa.string()),
        ("candidate", pa.string()),
        ("role", pa.string()),  # of the candidate: expected, ..., target, true, false
        ("cloze", pa.float64()),  # share of people who gave the candidate; null: not published
        ("prob", pa.float64()),  # null: the model cannot express the candidate
        ("rank", pa.int32()),  # 1 + number of whole words that are more probable; null as above
        ("n_tokens", pa.int32()),
        ("expressible", pa.bool_()),  # false: <unk> among its tokens, or none at all
    ]
)
TOPK = pa.schema(
    [
        ("item", pa.string()),
        ("condition", pa.string()),
        ("context", pa.string()),
        ("place", pa.int32()),  # 1: the most probable whole word
        ("word", pa.string()),
        ("prob", pa.float64()),
    ]
)
SUCCESS = pa.schema(
    [
        ("suite", pa.string()),
        ("circuit", pa.string()),  # null: in none of Hu et al. 2020
        ("item", pa.int64()),
        ("prediction", pa.int32()),  # from 1, in the suite's order
        ("comparison", pa.int32()),  # from 1; null: the whole prediction
        ("formula", pa.string()),  # of the prediction, or of the comparison
        ("success", pa.bool_()),
        ("tie", pa.bool_()),  # the sides of a comparison by < or > are equal, which is no success
        ("unk", pa.int32()),  # <unk> in the regions that the formula names
    ]
)
REGIONS = pa.schema(
    [
        ("suite", pa.string()),
        ("item", pa.int64()),
        ("condition", pa.string()),
        ("region", pa.int32()),  # from 1
        ("name", pa.string()),
        ("content", pa.string()),
        ("surprisal", pa.float64()),  # bits, summed over its tokens
        ("tokens", pa.int32()),
        ("unk", pa.int32()),  # of these
    ]
)
SENTENCES = pa.schema(
    [
        ("sentence", pa.string()),
        ("rating", pa.float64()),  # people's; null: the table has none
        ("label", pa.bool_()),  # true: good; null: the table has none
        ("pair", pa.string()),  # of a good and a bad sentence; null: in no pair
        ("lp", pa.float64()),  # nats; of masked models the pseudo-log-likelihood; null: unk=skip leaves no token
        ("unigram_lp", pa.float64()),  # nats, of the tokens that count in lp; null: no text to count them in
        ("tokens", pa.int32()),  # that count, <eos> among them where it is scored
        ("words", pa.int32()),  # of the corpus's reference tokenizer
        ("chars", pa.int32()),  # that are not white space
        ("unk", pa.int32()),  # tokens that were <unk>, skipped ones too
        ("unseen", pa.int32()),  # tokens that the text of the unigrams lacks; null as unigram_lp
    ]
)
WORDS = pa.schema(
    [
        ("text_id", pa.string()),
        ("number", pa.int64()),  # of the word in its text, from 1
        ("word", pa.string()),
        ("surprisal", pa.float64()),  # bits; null, as the next three, for a word without a token of its own
        ("surprisal_nats", pa.float64()),
        ("uncorrected", pa.float64()),  # bits, the sum over its tokens
        ("entropy", pa.float64()),  # bits, of the distribution over the token with which the word begins
        ("rank", pa.int64()),  # of that token, 1 for the most probable; 0: no token
        ("tokens", pa.int64()),
        ("unk", pa.int64()),  # of these
    ]
)
# A new kind of items adds the schemas of its files here.
ANSWERS = {"cloze": CLOZE, "topk": TOPK, "success": SUCCESS, "regions": REGIONS, "sentences": SENTENCES}


class _Named(TypedDict):
    name: str
    digest: str


class TableMetadata(TypedDict):
    """Schema of the metadata of all files here; items.parquet has no more than `benchmark`."""

    benchmark: _Named
    policy: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, Any]]
    model: NotRequired[_Named]
    step: NotRequired[Count | None]
    sample_words: NotRequired[Positive | None]


class AnswerMetadata(TypedDict):
    """Schema of the metadata of a file of answers."""

    parameters: dict[str, Any]  # of the method, or of the questions; where scores need unigrams, how they were counted
    policy: dict[str, Any]  # as resolved for this model, the parts that count here
    benchmark: _Named
    model: _Named
    tokenizer_digest: str
    step: Count | None  # null: the exported model
    sample_words: Positive | None  # null: unknown
    torch: str  # version
    moment: NotRequired[str]  # of a trajectory, as words_seen
    words_seen: NotRequired[Count]
    settings: NotRequired[dict[str, Any] | None]


class ScoreMetadata(AnswerMetadata):
    """Schema of the metadata of a score file of pairs."""

    method: str  # its name
    reference: str  # the reference tokenizer that counted the words


# Further keys: settings of Hugging Face models on which scores depend, beside weights and tokenizer.json
# (eval.scorers.tokens.score_settings, and chat_template of a prompt that was put in one); older files have none.
# Of methods that have them: templates (in full), prompts (an example, and the tokens of the answers), voters (digests
# of the metadata of the scores that vote) and drawn (the templates of each trial).
