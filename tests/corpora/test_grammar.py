"""The template engine, on a lexicon of its own; the toy language is what it was before it shared the engine."""

import json
import random
from collections import Counter

import pytest

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import NothingFits
from corpora.grammar.spelling import English, Mandarin
from corpora.grammar.symbols import Symbol, parse_symbol
from eval.benchmarks.paradigm import Exhausted, Paradigm
from pairscale.errors import InputError

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


def small(phrases=(), knows=None, variables=None, **more):
    tables = {
        "noun": [dict(zip(("singular", "plural", "class", "gender", "regular"), row, strict=True)) for row in NOUNS],
        "verb": [dict(zip(("base", "past", "object"), row, strict=True)) for row in VERBS],
    }
    variables = variables or {"n": ["singular", "plural"], "c": ["person", "animal", "text", "clothes"]}
    return Grammar({"variables": variables, "phrases": dict(phrases), "zipf": None, **more}, tables, knows)


def paradigm(skeleton, grammar, prefix="none"):
    return Paradigm("mine", {"phenomenon": "p", "field": "f", "prefix": prefix, "skeleton": skeleton}, grammar)


def goods(skeleton, grammar, seed=0, draws=2000):
    """Sentences that a template's good sides can be."""
    mine, rng, found = paradigm(skeleton, grammar), random.Random(seed), Counter()
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


def test_a_phrase_may_have_the_same_feature_twice():
    grammar = small({"Two[n, k]": {"noun.n noun.k": 1}}, variables={"n": ["plural"], "k": ["plural"]})
    assert "Boys girls." in {good for good, _ in goods("Two[n, k] {. / ?}", grammar)}


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
    mine = paradigm("NP[n, c] {yes / no}", grammar)
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
        ("x:noun.singular[class=y.class] y:noun.singular[class=x.class] {a / b}", "labels refer to each other"),
        ("noun.singular[class=v.object] {a / b}", "v.object: no row 'v:table.form' in the line"),
        ("v:verb.base noun.singular[class=v.objekt] {a / b}", "no table 'verb' with the columns objekt"),
        ("v:verb.base {v:noun.singular / b}", "its label is also that of verb"),
        ("v:verb {a / b}", "'v:verb': a word has no label or conditions"),
        ("noun.z {a / b}", "'z': no such variable in grammar.yaml: n, c"),
        ("$End {a / b}", "'$End': no such macro in grammar.yaml; available: none"),
        ("noun.singular[class=clothes] {a / b}", "no row of the table 'noun' fits"),
        ("NP[n] {a / b}", "no heading fits NP[singular]"),
    ],
)
def test_errors_name_template_and_constraint(skeleton, message):
    with pytest.raises(InputError) as raised:
        paradigm(skeleton, small())
    assert str(raised.value).startswith("paradigms.yaml: mine: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_template_that_runs_out_says_what_stood_against_it():
    mine = paradigm("noun.singular[class=text] noun.singular[class=text] {a / b}", small(distinct=["noun"]))
    with pytest.raises(
        Exhausted, match=r"mine: no more than 0 pairs can be drawn: of 4,000 further draws 4,000 with two"
    ):
        next(mine.pairs(random.Random(0), 1))
    mine = paradigm("noun.singular[class=text] {yes now / no}", small())
    with pytest.raises(Exhausted, match="further draws 4,000 of unequal length"):
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
        next(paradigm("{男 / 女人}", small(spelling="mandarin")).pairs(random.Random(0), 1))
    assert next(paradigm("{男 / 女人}", small()).pairs(random.Random(0), 1))["sentence_bad"] == "女人"


def test_toy_language_is_what_it_was_before_it_shared_its_engine():
    """Digests of text and pairs as they were made when the toy language had an engine of its own."""
    import hashlib

    from corpora.toy import documents
    from eval.benchmarks.toy import pairs
    from pairscale.command.compose import compose

    text, made = hashlib.sha256(), hashlib.sha256()
    for document in documents(compose("corpora", ["corpus=toy", "corpus.words=50000", "corpus.seed=1"]).corpus):
        text.update(json.dumps([document.source, document.sentences]).encode() + b"\n")
    for pair in pairs(5, 50):
        made.update(json.dumps(pair).encode() + b"\n")
    assert text.hexdigest() == "7e96fdae543bcd6efaab8dc095743a6bb165556ea26643138b2dd4c9eccc9a5f"
    assert made.hexdigest() == "17af0a69ab0cec43b14da74f877d5fa1326c5bbf34da906111110cd7a75702da"
