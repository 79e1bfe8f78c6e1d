"""The template engine and what it makes of the languages' data: properties that hold of every pair, whatever the seed.

The checkers of agreement read sentences by the tables of words alone; they know no template.
"""

import json
import random
from collections import Counter
from functools import lru_cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corpora.errors import ConfigError, InputError
from corpora.grammar import Grammar
from corpora.lexicon import Entry, NothingFits, read_table
from corpora.spelling import English, Mandarin
from corpora.symbols import MARKS, Symbol, parse_symbol
from corpora.templates import Exhausted, Template
from corpora.words import words
from eval.benchmarks import load_benchmark
from eval.config import BenchmarkConfig
from eval.generated import FOLDER, grammar_of, paradigms_of, template_of
from eval.generated.making import LEAST_PAIRS
from eval.generated.vocabulary import Vocabulary, read_vocabulary
from eval.scores import pairs_label

ALL = [(language, name) for language in ("en", "zh") for name in paradigms_of(language)]
SOUNDS = {"hour": True, "honest": True, "university": False, "one": False}

# The engine, on a lexicon of its own

NOUNS = [
    ("boy", "boys", "person", "masculine", "yes"), ("girl", "girls", "person", "feminine", "yes"),
    ("child", "children", "person", "masculine|feminine", "no"), ("cat", "cats", "animal", "neuter", "yes"),
    ("book", "books", "text", "neuter", "yes"), ("-", "trousers", "clothes", "neuter", "yes"),
]  # fmt: skip
VERBS = [
    ("see", "saw", "person|animal|text"), ("read", "read", "text"), ("feed", "fed", "animal"), ("sleep", "slept", "-"),
]  # fmt: skip


def small(phrases=(), knows=None, **more):
    tables = {
        "noun": [dict(zip(("singular", "plural", "class", "gender", "regular"), row, strict=True)) for row in NOUNS],
        "verb": [dict(zip(("base", "past", "object"), row, strict=True)) for row in VERBS],
    }
    variables = {"n": ["singular", "plural"], "c": ["person", "animal", "text", "clothes"]}
    return Grammar({"variables": variables, "phrases": dict(phrases), "zipf": None, **more}, tables, knows)


def template(skeleton, grammar, prefix="none"):
    return Template("mine", {"phenomenon": "p", "field": "f", "prefix": prefix, "skeleton": skeleton}, grammar)


def goods(skeleton, grammar, seed=0, draws=2000):
    """Sentences that a template's good sides can be."""
    mine, rng, found = template(skeleton, grammar), random.Random(seed), Counter()
    for _ in range(draws):
        try:
            good, bad, _ = mine._draw(rng)
        except NothingFits:
            continue
        found[grammar.spelling.text(good), grammar.spelling.text(bad)] += 1
    return found


def test_a_label_is_one_row_and_its_cells_are_conditions_elsewhere():
    found = goods(
        "the x:noun.singular[class=v.object] v:verb.past[object!=-] {x:noun.singular / x:noun.plural} .", small()
    )
    fits = {"saw": {"boy", "girl", "child", "cat", "book"}, "read": {"book"}, "fed": {"cat"}}
    plural = {row[0]: row[1] for row in NOUNS}
    expected = {
        (f"The {noun} {verb} {noun}.", f"The {noun} {verb} {plural[noun]}.") for verb in fits for noun in fits[verb]
    }
    assert set(found) == expected


def test_cells_are_arguments_of_phrases_and_sets_fit_headings():
    grammar = small({"NP[c]": {"a noun.singular[class=c]": 1}, "NP[person]": {"everybody": 1}})
    found = goods("v:verb.past[object!=-] NP[v.object] {yes / no}", grammar)
    objects = {good.removesuffix(" yes").split(" ", 1)[0]: set() for good, _ in found}
    for good, _ in found:
        verb, _, rest = good.removesuffix(" yes").partition(" ")
        objects[verb].add(rest)
    # trousers have no singular, and a class that has no row is left out; everybody is where a person may be
    assert objects == {
        "Saw": {"a boy", "a girl", "a child", "a cat", "a book", "everybody"}, "Read": {"a book"}, "Fed": {"a cat"},
    }  # fmt: skip


def test_labels_in_a_phrase_are_its_own():
    grammar = small({"VP": {"v:verb.base[object!=-] noun.singular[class=v.object]": 1}}, distinct=["noun"])
    found = goods("VP or VP {yes / no}", grammar)
    assert all(len({good.split()[1], good.split()[4]}) == 2 for good, _ in found)  # distinct rows, in phrases too
    assert {good.split()[0].lower() for good, _ in found} == {"see", "read", "feed"}
    assert goods("VP or VP {yes / no}", small({"VP": {"read noun.singular[class=text]": 1}}))  # without distinct: alike


def test_two_places_are_distinct_but_by_a_label():
    grammar = small(distinct=["noun"])
    for good, _ in goods("x:noun.singular saw noun.singular {x:noun.plural / x:noun.singular}", grammar):
        first, _, second, last = good.lower().split()
        assert first != second
        assert {row[0]: row[1] for row in NOUNS}[first] == last


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("gender=feminine", {"girl", "child"}), ("gender!=masculine", {"girl", "cat", "book"}),
        ("gender=masculine, gender!=feminine", {"boy"}), ("class=animal|text", {"cat", "book"}),
        ("class!=person|animal", {"book"}),
    ],
)  # fmt: skip
def test_conditions_on_sets(conditions, expected):
    rows, _ = small().lexicon.rows(parse_symbol(f"noun.singular[{conditions}]".replace(" ", ""), "here"), ["singular"])
    assert {row["singular"] for row in rows} == expected


def test_a_phrase_without_an_end_and_a_binding_without_a_row_are_left_out():
    grammar = small({"NP[n, c]": {"noun.n[class=c]": 1, "a NP[n, c]": 1}}, knows=lambda word: word != "book")
    with pytest.raises(NothingFits, match=r"noun.singular\[class=clothes\]: no row of the table 'noun' fits"):
        grammar.choice(Symbol("NP", None, ("singular", "clothes")))
    with pytest.raises(NothingFits, match=r"noun.singular\[class=text\]: no row .* is in the vocabulary"):
        grammar.choice(Symbol("NP", None, ("singular", "text")))
    mine = template("NP[n, c] {yes / no}", grammar)
    assert len(mine.left_out) == 2  # one trouser, one book
    assert {good.split()[-2] for good, _ in goods("NP[n, c] {yes / no}", grammar)} == {
        "boy", "boys", "girl", "girls", "child", "children", "cat", "cats", "trousers", "books",
    } | {word.capitalize() for word in ("boy", "boys", "girl", "girls", "child", "children", "cat", "cats", "trousers",
                                        "books")}  # fmt: skip


def test_macros_aliases_and_empty_lines():
    grammar = small(
        {"Maybe": {"": 1, "now": 1}},
        aliases={"verb": {"singular": "past"}},
        macros={"End": ["{yes / no}", "{so / not}"]},
    )
    found = {good for good, _ in goods("they Maybe verb.singular[object=animal, object!=text] $End", grammar)}
    assert found == {"They fed yes", "They fed so", "They now fed yes", "They now fed so"}


@pytest.mark.parametrize(
    ("skeleton", "message"),
    [
        ("x:noun.singular[class=y.class] y:noun.singular[class=x.class] {a / b}", "labels that wait for each other"),
        ("noun.singular[class=v.object] {a / b}", "v.object: there is no row 'v:table.form' in the line"),
        ("v:verb.base noun.singular[class=v.objekt] {a / b}", "no table 'verb' with the columns objekt"),
        ("v:verb.base {v:noun.singular / b}", "its label is also that of verb"),
        ("v:verb {a / b}", "'v:verb': a word has neither label nor conditions"),
        ("noun.z {a / b}", "'z' is no variable of grammar.yaml: n, c"),
        ("$End {a / b}", "'$End': grammar.yaml has no such macro; it has none"),
        ("noun.singular[class=clothes] {a / b}", "no row of the table 'noun' fits"),
        ("NP[n] {a / b}", "no heading fits NP[singular]"),
    ],
)
def test_errors_name_template_and_constraint(skeleton, message):
    with pytest.raises(InputError) as raised:
        template(skeleton, small())
    assert str(raised.value).startswith("templates.yaml: mine: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_template_that_runs_out_says_what_stood_against_it():
    mine = template("noun.singular[class=text] noun.singular[class=text] {a / b}", small(distinct=["noun"]))
    with pytest.raises(
        Exhausted, match=r"mine: no more than 0 pairs can be drawn: of 20,000 further draws 20,000 with two"
    ):
        next(mine.pairs(random.Random(0), 1))
    mine = template("noun.singular[class=text] {yes now / no}", small())
    with pytest.raises(Exhausted, match="further draws 20,000 of unequal length"):
        next(mine.pairs(random.Random(0), 1))


def test_spelling():
    english = English([word for word, vowel in SOUNDS.items() if vowel], [word for word in SOUNDS if not SOUNDS[word]])
    for text, expected in {
        "a apple a hour a university a one": "An apple an hour a university a one",
        "such|a|old|cat|,|Mary|'s|?": "Such an old cat, Mary's?", "a lot of|apples": "A lot of apples",
        "such a|idea|.": "Such an idea.",
    }.items():  # fmt: skip
        entries = text.split("|") if "|" in text else text.split()
        assert english.text(english.spell(entries)) == expected
    assert Mandarin().text(Mandarin().spell(["她", "看", "，"])) == "她看，"
    with pytest.raises(Exhausted, match="unequal length"):  # in characters, where English counts entries
        next(template("{男 / 女人}", small(spelling="mandarin")).pairs(random.Random(0), 1))
    assert next(template("{男 / 女人}", small()).pairs(random.Random(0), 1))["sentence_bad"] == "女人"


# The languages' data


@lru_cache(maxsize=2)
def grammar(language):
    return grammar_of(language)


@lru_cache
def of(language, name):
    return template_of(language, name, grammar(language))


def drawn(language, name, seed, count):
    return list(of(language, name).pairs(random.Random(f"{seed}:{name}"), count))


@settings(max_examples=60)
@given(st.sampled_from(ALL), st.integers(0, 2**40))
def test_pairs_are_minimal_new_and_fit_their_flags(paradigm, seed):
    language, name = paradigm
    made = drawn(*paradigm, seed, 10)
    assert made == drawn(*paradigm, seed, 10)
    assert made[:4] == drawn(*paradigm, seed, 4)
    assert len({pair["sentence_good"] for pair in made}) == 10
    for pair in made:
        good, bad = pair["sentence_good"], pair["sentence_bad"]
        assert good != bad
        assert pair["UID"] == name
        assert not (pair["one_prefix_method"] and pair["two_prefix_method"])
        assert pair["one_prefix_method"] == ("one_prefix_prefix" in pair)
        assert pair["two_prefix_method"] == ("two_prefix_word" in pair)
        if language == "zh":
            assert len(good) == len(bad)
            continue
        assert good[-1] in ".?"
        assert good == " ".join(good.split())
        assert good[0].isupper()
        if pair["one_prefix_method"]:
            prefix = pair["one_prefix_prefix"]
            assert good.startswith(f"{prefix} {pair['one_prefix_word_good']}".strip())
            assert bad.startswith(f"{prefix} {pair['one_prefix_word_bad']}".strip())
            assert pair["one_prefix_word_good"] != pair["one_prefix_word_bad"]
        if pair["two_prefix_method"]:
            prefixes = [pair["two_prefix_prefix_good"], pair["two_prefix_prefix_bad"]]
            assert prefixes[0] != prefixes[1]
            for sentence, prefix in zip((good, bad), prefixes, strict=True):
                assert sentence.startswith(f"{prefix} {pair['two_prefix_word']}")


@settings(max_examples=40)
@given(st.sampled_from(ALL), st.integers(0, 2**40))
def test_both_sentences_have_as_many_entries_and_no_row_twice(paradigm, seed):
    """Looked at before they are spelt, with the draws of the frame told apart by their rows."""
    mine, rng = of(*paradigm), random.Random(seed)
    accepted = 0
    for _ in range(200):
        try:
            good, bad, _ = mine._draw(rng)
        except NothingFits:
            continue
        if mine._unfit(good, bad, seen=False) is None:
            accepted += 1
            assert len(good) == len(bad)
            assert not any(type(word) is Entry and word == "-" for word in (*good, *bad))
    assert accepted


@settings(max_examples=30)
@given(st.sampled_from([name for language, name in ALL if language == "en"]), st.integers(0, 2**40), st.data())
def test_a_vocabulary_is_kept(name, seed, data):
    """Half of the words of some pairs, and all of their fixed ones, are known: what is made has no others."""
    texts = [pair[f"sentence_{side}"] for pair in drawn("en", name, seed, 60) for side in ("good", "bad")]
    counts = Counter(word for text in texts for word in words(text, "treebank"))
    rare = sorted(word for word, count in counts.items() if count <= 6)
    unknown = set(data.draw(st.lists(st.sampled_from(rare), max_size=len(rare) // 2)) if rare else [])
    known = Vocabulary({word: count for word, count in counts.items() if word not in unknown}, "treebank")
    try:
        mine = template_of("en", name, grammar_of("en", known.knows))
        made = list(mine.pairs(random.Random(seed), 3, known.lacks))
    except (Exhausted, NothingFits):
        assume(False)
    for pair in made:
        for side in ("good", "bad"):
            assert set(words(pair[f"sentence_{side}"], "treebank")) <= set(known.counts)


# Agreement, read off the tables


@lru_cache
def table(name):
    return read_table(FOLDER / "english" / "lexicon" / f"{name}.tsv")


def numbers_of(word, *tables):
    return {
        number
        for name in tables
        for row in table(name)
        for number in ("singular", "plural")
        if row[number].lower() == word.lower() and row[number] != "-"
    }


def entries(sentence):
    return [word for word in words(sentence, "treebank") if word not in MARKS]


DEMONSTRATIVES = {"this": "singular", "that": "singular", "these": "plural", "those": "plural"}


def demonstrative_agrees(sentence):
    """Whether the last demonstrative and the next noun have a number in common; "that" may be no demonstrative."""
    tokens = [word.lower() for word in entries(sentence)]
    place = max(place for place, word in enumerate(tokens) if word in DEMONSTRATIVES)
    adjectives = {row["word"] for row in table("adjective")}
    for start in range(place + 1, len(tokens)):
        found = {length: numbers_of(" ".join(tokens[start : start + length]), "noun") for length in (2, 1)}
        an_adjective = tokens[start] in adjectives and numbers_of(tokens[min(start + 1, len(tokens) - 1)], "noun")
        if any(found.values()) and not an_adjective:
            return DEMONSTRATIVES[tokens[place]] in (found[2] or found[1])
    raise AssertionError(sentence)


@pytest.mark.parametrize("name", [name for language, name in ALL if name.startswith("determiner_noun_agreement")])
def test_determiners_agree_in_good_sentences_alone(name):
    for pair in drawn("en", name, 5, 100):
        assert demonstrative_agrees(pair["sentence_good"]), pair["sentence_good"]
        assert not demonstrative_agrees(pair["sentence_bad"]), pair["sentence_bad"]


NUMBERS = ("singular", "plural")
FINITE = {
    **{row[number]: number for row in table("auxiliary") if row["agrees"] == "yes" for number in NUMBERS},
    **{row["third"]: "singular" for row in table("verb")}, **{row["base"]: "plural" for row in table("verb")},
}  # fmt: skip


def finite_number(tokens):
    """Number of the finite verb that `tokens` begin with, if any: an auxiliary, or a verb of one or two words."""
    two = f"{tokens[0]}{tokens[1]}" if tokens[1:] and tokens[1] == "n't" else " ".join(tokens[:2])
    return FINITE.get(two) or FINITE.get(tokens[0])


@pytest.mark.parametrize(
    "name", ["regular_plural_subject_verb_agreement_1", "irregular_plural_subject_verb_agreement_1"]
)
def test_verbs_agree_with_simple_subjects_in_good_sentences_alone(name):
    """The verb is the critical word of the one-prefix method; the subject ends right before it, with its noun."""
    for pair in drawn("en", name, 5, 100):
        tokens = entries(pair["one_prefix_prefix"])
        ends = (" ".join(tokens[-2:]), tokens[-1])
        found = next(filter(None, (numbers_of(end, "noun") for end in ends)), set())
        if any(row["word"] == tokens[-1] for row in table("name")):
            found = {"singular"}
        assert found, pair["sentence_good"]
        assert finite_number(entries(pair["one_prefix_word_good"])) in found, pair["sentence_good"]
        if len(found) == 1:  # "the deer" is both
            assert finite_number(entries(pair["one_prefix_word_bad"])) not in found, pair["sentence_bad"]


@pytest.mark.parametrize("name", ["anaphor_gender_agreement", "anaphor_number_agreement"])
def test_reflexives_agree_with_the_first_noun_in_good_sentences_alone(name):
    reflexives = {row["word"]: (row["number"], set(row["gender"].split("|"))) for row in table("reflexive")}
    persons = {row["word"]: ({"singular"}, set(row["gender"].split("|"))) for row in table("name")}
    for row in table("noun"):
        for number in ("singular", "plural"):
            there = persons.get(row[number], (set(), set()))
            persons[row[number]] = (there[0] | {number}, there[1] | set(row["gender"].split("|")))

    def agrees(sentence):
        tokens = entries(sentence)
        spans = [" ".join(tokens[at : at + length]) for at in range(len(tokens)) for length in (2, 1)]
        numbers, genders = persons[next(span for span in spans if span in persons)]
        number, gender = reflexives[tokens[-1]]
        return number in numbers and not gender.isdisjoint(genders)

    for pair in drawn("en", name, 5, 200):
        assert agrees(pair["sentence_good"]), pair["sentence_good"]
        assert not agrees(pair["sentence_bad"]), pair["sentence_bad"]


# benchmark=generated


def config(**more):
    return BenchmarkConfig(name="generated", **{"language": "en", "pairs": 5, "seed": 1, **more})


def test_a_vocabulary_leaves_paradigms_out_that_it_cannot_make(tmp_path):
    names = ["anaphor_gender_agreement", "determiner_noun_agreement_1"]
    texts = [pair[f"sentence_{side}"] for pair in drawn("en", names[0], 1, 2000) for side in ("good", "bad")]
    counts = Counter(word for text in texts for word in words(text, "treebank"))
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"{word}\t{count}\n" for word, count in counts.items() if word not in ("these", "These")))
    benchmark = load_benchmark(config(paradigms=names, vocabulary=str(file)))
    assert set(benchmark.pairs["paradigm"]) == {names[0]}
    assert len(benchmark.pairs) == 5
    assert list(benchmark.unavailable) == [names[1]]
    assert names[1] in benchmark.unavailable[names[1]]
    assert benchmark.made["vocabulary"]["words"] == len(read_vocabulary(file, "en").counts)
    more = load_benchmark(config(paradigms=names[:1], vocabulary=str(file), pairs=LEAST_PAIRS + 50))
    assert more.pairs["good"].tolist()[:5] == benchmark.pairs["good"].tolist()
    balanced = load_benchmark(config(paradigms=names[:1], vocabulary=str(file), balance=True))
    for good, bad in balanced.pairs[["good", "bad"]].itertuples(index=False):
        own = [set(words(side, "treebank")) for side in (good, bad)]
        (first,), (second,) = own[0] - own[1], own[1] - own[0]
        assert 0.5 <= counts[first] / counts[second] <= 2
    file.write_text("the\n")
    with pytest.raises(InputError, match="no paradigm has 200 pairs; anaphor_gender_agreement: "):
        load_benchmark(config(paradigms=names, vocabulary=str(file)))
    with pytest.raises(ConfigError, match="does not say how often"):
        load_benchmark(config(paradigms=names, vocabulary=str(file), balance=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no words"),
        ("the\na cat\n", "mine.tsv:2: must be a word"),
        ("the\tx\n", "mine.tsv:1: must be a word"),
    ],
)
def test_files_that_are_no_vocabulary(tmp_path, text, message):
    file = tmp_path / "mine.tsv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_vocabulary(file, "en")
    with pytest.raises(InputError, match="cannot be read"):
        read_vocabulary(tmp_path / "nowhere", "en")


def test_labels_tell_what_pairs_they_are():
    assert pairs_label(config(pairs=1000)) == "generated+en"
    assert pairs_label(config(pairs=1000, vocabulary="study", min_count=5)) == "generated+en+study-k5"
    assert (
        pairs_label(config(pairs=1000, vocabulary="run", min_count=2, balance=True)) == "generated+en+run-k2+balanced"
    )
    assert pairs_label(config(vocabulary="a/my words.txt", seed=2)) == "generated+en+words-my_words+seed-2+pairs-5"
    assert pairs_label(config(pairs=1000, language="zh")) == "generated+zh"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"language": "fr"}, "benchmark.language=fr: must be one of en, zh"), ({"pairs": None}, "both must be numbers"),
        ({"vocabulary": "study"}, "benchmark.min_count=null"), ({"balance": True}, "needs a vocabulary"),
        ({"paradigms": ["anaphor_gender"]}, "has no paradigm 'anaphor_gender'; near it: anaphor_gender_agreement"),
        ({"per_paradigm": 3}, "form=generated has no use for it"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(more, message):
    with pytest.raises(ConfigError) as raised:
        load_benchmark(config(**more))
    assert message in str(raised.value)


def test_toy_language_is_what_it_was_before_it_shared_its_engine():
    """Digests of text and pairs as they were made when the toy language had an engine of its own."""
    import hashlib

    from conf import compose
    from corpora.toy import documents, pairs

    text, made = hashlib.sha256(), hashlib.sha256()
    for document in documents(compose("corpora", ["corpus=toy", "corpus.words=50000", "corpus.seed=1"]).corpus):
        text.update(json.dumps([document.source, document.sentences]).encode() + b"\n")
    for pair in pairs(5, 50):
        made.update(json.dumps(pair).encode() + b"\n")
    assert text.hexdigest() == "7e96fdae543bcd6efaab8dc095743a6bb165556ea26643138b2dd4c9eccc9a5f"
    assert made.hexdigest() == "17af0a69ab0cec43b14da74f877d5fa1326c5bbf34da906111110cd7a75702da"
