"""Define the columns and metadata of each kind of score file (eval/scores/files.py)."""

from typing import Any, NotRequired, TypedDict

import pyarrow as pa

from pairscale.schema import Count, Positive

SIDES = ("good", "bad")
SCORES = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("template", pa.string()),  # null: the method has no templates
        ("trial", pa.int32()),  # trial of a vote, from 1; null: the method has no trials
        *((side, pa.float64()) for side in SIDES),  # the method's own score; the higher one wins
        # These describe the scored text (the sentence, a filled template, or the answer to a prompt); null for votes.
        *((f"{side}_lp", pa.float64()) for side in SIDES),  # log-probability in nats
        *((f"{side}_tokens", pa.int32()) for side in SIDES),  # number of scored tokens, including a scored <eos>
        # These describe the sentence itself, whatever text the method scores.
        *((f"{side}_words", pa.int32()) for side in SIDES),  # words, counted by the corpus's reference tokenizer
        *((f"{side}_chars", pa.int32()) for side in SIDES),  # characters without white space
        *((f"{side}_unk", pa.int32()) for side in SIDES),  # <unk> tokens, including skipped ones
        ("crit_unk", pa.int32()),  # <unk> tokens in the parts where the sentences differ, in both sentences together
        ("order", pa.string()),  # whether the good sentence was A or B in a prompt; null: no such prompt
        # For a choice, the bad side is the best of the other options. Null for pairs.
        ("rival", pa.int32()),  # its number among all options, from 0; the first one if several share the best score
        ("rivals", pa.int32()),  # how many of the other options share the best score
    ]
)
ITEMS = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("phenomenon", pa.string()),
        ("field", pa.string()),  # null if the benchmark has no fields
        ("good", pa.string()),
        ("bad", pa.string()),
        ("lexically_identical", pa.bool_()),  # this column and the following ones: null if not in the benchmark
        ("one_prefix_method", pa.bool_()),
        ("two_prefix_method", pa.bool_()),
        *((f"one_prefix_{part}", pa.string()) for part in ("prefix", "word_good", "word_bad")),
        *((f"two_prefix_{part}", pa.string()) for part in ("prefix_good", "prefix_bad", "word")),
        # Choices, and pairs with a context: good is the right option after its context, and bad consists of all others.
        # These columns are null for other pairs.
        ("options", pa.list_(pa.string())),  # in the order of the table
        ("contexts", pa.list_(pa.string())),  # the text before each option, which is read but not scored
        ("gold", pa.int32()),  # number of the right option, from 0
        ("ties", pa.string()),  # what a tie counts as unless a command says otherwise; null: wrong
        ("unk_wrong", pa.bool_()),  # true: an item with <unk> is wrong, whatever its scores; null: false
    ]
)
TOKENS = pa.schema(
    [
        ("pair_id", pa.string()),
        ("paradigm", pa.string()),
        ("side", pa.string()),  # good | bad; for a choice, bad is the first of the other options
        ("position", pa.int32()),
        # Start and end: character offsets in the sentence with its context; for <eos>, the length of the whole text.
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("logprob", pa.float64()),  # nats
        ("unk", pa.bool_()),
    ]
)
CLOZE = pa.schema(
    [
        ("item", pa.string()),
        ("condition", pa.string()),  # how the context was changed, or which of the item's contexts it is
        ("trial", pa.int32()),  # number of the trial, if contexts of the condition are drawn at random; else null
        ("group", pa.string()),  # group of the item (cprag constraint H or L, neg licensing Y or N); else null
        ("context", pa.string()),
        ("candidate", pa.string()),
        ("role", pa.string()),  # role of the candidate: expected, ..., target, true, false
        ("cloze", pa.float64()),  # share of people who gave the candidate; null: not published
        ("prob", pa.float64()),  # null: the model can't express the candidate
        ("rank", pa.int32()),  # 1 + number of whole words that are more probable; null if prob is null
        ("n_tokens", pa.int32()),
        ("expressible", pa.bool_()),  # false: the candidate has no tokens, or <unk> among them
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
        ("circuit", pa.string()),  # null: the suite isn't part of a circuit in Hu et al. 2020
        ("item", pa.int64()),
        ("prediction", pa.int32()),  # from 1, in the suite's order
        ("comparison", pa.int32()),  # from 1; null: the row is about the whole prediction
        ("formula", pa.string()),  # formula of the prediction or comparison
        ("success", pa.bool_()),
        ("tie", pa.bool_()),  # whether both sides of a comparison with < or > are equal, which isn't a success
        ("unk", pa.int32()),  # number of <unk> in the regions that the formula names
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
        ("surprisal", pa.float64()),  # bits, summed over the region's tokens
        ("tokens", pa.int32()),
        ("unk", pa.int32()),  # how many of the tokens are <unk>
    ]
)
SENTENCES = pa.schema(
    [
        ("sentence", pa.string()),
        ("rating", pa.float64()),  # people's rating; null: the table has none
        ("label", pa.bool_()),  # true: good; null: the table has none
        ("pair", pa.string()),  # id of the pair of a good and a bad sentence; null: the sentence isn't in a pair
        ("lp", pa.float64()),  # nats; for masked models, the pseudo-log-likelihood; null: unk=skip leaves no token
        ("unigram_lp", pa.float64()),  # nats, over the tokens scored in lp; null: there is no text to count tokens in
        ("tokens", pa.int32()),  # number of scored tokens, including a scored <eos>
        ("words", pa.int32()),  # words, counted by the corpus's reference tokenizer
        ("chars", pa.int32()),  # characters without white space
        ("unk", pa.int32()),  # <unk> tokens, including skipped ones
        ("unseen", pa.int32()),  # tokens that aren't in the text for the unigrams; null if unigram_lp is null
    ]
)
WORDS = pa.schema(
    [
        ("text_id", pa.string()),
        ("number", pa.int64()),  # position of the word in its text, from 1
        ("word", pa.string()),
        ("surprisal", pa.float64()),  # bits; this and the next three columns are null if the word has no own token
        ("surprisal_nats", pa.float64()),
        ("uncorrected", pa.float64()),  # bits, the sum over the word's tokens
        ("entropy", pa.float64()),  # bits, of the distribution over the word's first token
        ("rank", pa.int64()),  # rank of the word's first token, 1 for the most probable; 0: no token
        ("tokens", pa.int64()),
        ("unk", pa.int64()),  # how many of the tokens are <unk>
    ]
)
# To add a new kind of items, add its schemas here.
ANSWERS = {"cloze": CLOZE, "topk": TOPK, "success": SUCCESS, "regions": REGIONS, "sentences": SENTENCES}


class _Named(TypedDict):
    name: str
    digest: str


class TableMetadata(TypedDict):
    """The schema of the metadata that all files share. items.parquet only has `benchmark`."""

    benchmark: _Named
    policy: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, Any]]
    model: NotRequired[_Named]
    step: NotRequired[Count | None]
    sample_words: NotRequired[Positive | None]


class AnswerMetadata(TypedDict):
    """The metadata schema for files of answers."""

    parameters: dict[str, Any]  # of the method or the questions, and how unigrams were counted, if they are needed
    policy: dict[str, Any]  # the scoring settings that matter here, as resolved for this model
    benchmark: _Named
    model: _Named
    tokenizer_digest: str
    step: Count | None  # training step of a snapshot; null: the exported model
    sample_words: Positive | None  # null: unknown
    torch: str  # version of torch
    moment: NotRequired[str]  # only for snapshots, like words_seen
    words_seen: NotRequired[Count]
    settings: NotRequired[dict[str, Any] | None]


class ScoreMetadata(AnswerMetadata):
    """The metadata schema for score files of pairs."""

    method: str  # name of the method
    reference: str  # the reference tokenizer that counted the words


# There are further keys. For Hugging Face models, `settings` contains everything that affects scores apart from the
# weights and tokenizer.json (eval.scorers.tokens.score_settings, and the chat_template if prompts use one). Older files
# don't have it. Some methods also have `templates` (their full text), `prompts` (an example, and the tokens of the
# answers), `voters` (digests of the metadata of the scores that vote) and `drawn` (the templates of each trial).
