"""The template engine, with a small lexicon: what is drawn, how often, and what is an error."""

import random
from collections import Counter

import pytest

from corpora.grammar.engine import English, Grammar, Mandarin
from corpora.grammar.lexicon import NothingFits, read_table
from corpora.grammar.symbols import Symbol, parse_symbol
from eval.benchmarks.paradigm import Exhausted, Paradigm
from pairscale.errors import InputError

SOUNDS = {"hour": True, "honest": True, "university": False, "one": False}

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


def drawn_pairs(skeleton, grammar, seed=0, draws=2000):
    """Return how often each pair of sentences is drawn from a template."""
    template, rng, counts = paradigm(skeleton, grammar), random.Random(seed), Counter()
    for _ in range(draws):
        try:
            good, bad, _ = template._draw(rng)
        except NothingFits:
            continue
        counts[grammar.spelling.text(good), grammar.spelling.text(bad)] += 1
    return counts


def test_cells_of_a_labelled_row_are_conditions_elsewhere_in_the_line():
    pairs = drawn_pairs(
        "the x:noun.singular[class=v.object] v:verb.past[object!=-] {x:noun.singular / x:noun.plural} .", small()
    )
    fits = {"saw": {"boy", "girl", "child", "cat", "book"}, "read": {"book"}, "fed": {"cat"}}
    plural = {row[0]: row[1] for row in NOUNS}
    expected = {
        (f"The {noun} {verb} {noun}.", f"The {noun} {verb} {plural[noun]}.") for verb in fits for noun in fits[verb]
    }
    assert set(pairs) == expected


def test_cells_can_be_arguments_of_phrases():
    grammar = small({"NP[c]": {"a noun.singular[class=c]": 1}, "NP[person]": {"everybody": 1}})
    pairs = drawn_pairs("v:verb.past[object!=-] NP[v.object] {yes / no}", grammar)
    objects = {good.removesuffix(" yes").split(" ", 1)[0]: set() for good, _ in pairs}
    for good, _ in pairs:
        verb, _, rest = good.removesuffix(" yes").partition(" ")
        objects[verb].add(rest)
    # trousers have no singular, and a class without a row is left out; everybody stands for a person
    assert objects == {
        "Saw": {"a boy", "a girl", "a child", "a cat", "a book", "everybody"}, "Read": {"a book"}, "Fed": {"a cat"},
    }  # fmt: skip


def test_features_are_shared_within_a_line_and_rows_drawn_by_their_rank():
    phrases = {"NP": {"Det[n] noun.n[gender=g|masculine]": 1}, "Det[singular]": {"one": 1}, "Det[plural]": {"two": 1}}
    variables = {"n": ["singular", "plural"], "g": ["masculine", "feminine", "neuter"]}
    nouns = [{"singular": "boy", "plural": "boys", "gender": "masculine"},
             {"singular": "-", "plural": "twins", "gender": "feminine"}]  # fmt: skip
    description = {"variables": variables, "phrases": phrases, "zipf": {"shift": 1, "exponent": 1}}
    grammar, rng = Grammar(description, {"noun": nouns}), random.Random(0)
    counts = Counter(" ".join(grammar.draw(Symbol("NP", None, ()), rng)) for _ in range(3000))
    # g is drawn evenly; feminine adds the twins, at weight 1/3 beside the boys' 1/2
    expected = {"one boy": 1 / 2, "two boys": 1 / 2 * (2 / 3 + 1 / 3 * 3 / 5), "two twins": 1 / 2 * 1 / 3 * 2 / 5}
    assert {text: count / 3000 for text, count in counts.items()} == pytest.approx(expected, abs=0.03)
    bound = grammar.bindings([parse_symbol("X[g, -g]", "here")], {"g": "neuter"})
    assert [binding["-g"] for binding in bound] == ["masculine", "feminine"]


def test_a_phrase_may_have_the_same_feature_twice():
    grammar = small({"Two[n, k]": {"noun.n noun.k": 1}}, variables={"n": ["plural"], "k": ["plural"]})
    assert "Boys girls." in {good for good, _ in drawn_pairs("Two[n, k] {. / ?}", grammar)}


def test_each_use_of_a_phrase_has_its_own_labels():
    grammar = small({"VP": {"v:verb.base[object!=-] noun.singular[class=v.object]": 1}}, distinct=["noun"])
    pairs = drawn_pairs("VP or VP {yes / no}", grammar)
    assert all(len({good.split()[1], good.split()[4]}) == 2 for good, _ in pairs)  # distinct rows, in phrases too
    assert {good.split()[0].lower() for good, _ in pairs} == {"see", "read", "feed"}
    assert drawn_pairs("VP or VP {yes / no}", small({"VP": {"read noun.singular[class=text]": 1}}))  # not distinct


def test_words_are_distinct_unless_a_label_joins_them():
    grammar = small(distinct=["noun"])
    for good, _ in drawn_pairs("x:noun.singular saw noun.singular {x:noun.plural / x:noun.singular}", grammar):
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
def test_conditions_on_cells_with_several_values(conditions, expected):
    rows, _ = small().lexicon.rows(parse_symbol(f"noun.singular[{conditions}]".replace(" ", ""), "here"), ["singular"])
    assert {row["singular"] for row in rows} == expected


def test_endless_phrases_and_bindings_without_rows_are_left_out():
    grammar = small({"NP[n, c]": {"noun.n[class=c]": 1, "a NP[n, c]": 1}}, knows=lambda word: word != "book")
    with pytest.raises(NothingFits, match=r"noun.singular\[class=clothes\]: no row of the table 'noun' fits"):
        grammar.choice(Symbol("NP", None, ("singular", "clothes")))
    with pytest.raises(NothingFits, match=r"noun.singular\[class=text\]: no fitting row .* is in the vocabulary"):
        grammar.choice(Symbol("NP", None, ("singular", "text")))
    template = paradigm("NP[n, c] {yes / no}", grammar)
    assert len(template.left_out) == 2  # one trouser, one book
    assert {good.split()[-2].lower() for good, _ in drawn_pairs("NP[n, c] {yes / no}", grammar)} == {
        "boy", "boys", "girl", "girls", "child", "children", "cat", "cats", "trousers", "books",
    }  # fmt: skip


def test_macros_aliases_and_empty_lines():
    grammar = small(
        {"Maybe": {"": 1, "now": 1}},
        aliases={"verb": {"singular": "past"}},
        macros={"End": ["{yes / no}", "{so / not}"]},
    )
    sentences = {good for good, _ in drawn_pairs("they Maybe verb.singular[object=animal, object!=text] $End", grammar)}
    assert sentences == {"They fed yes", "They fed so", "They now fed yes", "They now fed so"}


@pytest.mark.parametrize(
    ("skeleton", "message"),
    [
        ("x:noun.singular[class=y.class] y:noun.singular[class=x.class] {a / b}", "labels refer to each other"),
        ("noun.singular[class=v.object] {a / b}", "v.object: there is no row 'v:table.form'"),
        ("v:verb.base noun.singular[class=v.objekt] {a / b}", "no table 'verb' with the columns objekt"),
        ("v:verb.base {v:noun.singular / b}", "have the same label"),
        ("v:verb {a / b}", "'v:verb': a word has no label or conditions"),
        ("noun.z {a / b}", "'z': grammar.yaml doesn't declare this variable"),
        ("$End {a / b}", "no macro '$End'"),
        ("noun.singular[class=clothes] {a / b}", "no row of the table 'noun' fits"),
        ("NP[n] {a / b}", "no heading fits NP[singular]"),
        ("the {noun.n} .", "{good / bad}"),
        ("the {noun.singular / noun.plural} *sleep .", "'*'"),
    ],
)
def test_errors_name_the_template_and_the_constraint(skeleton, message):
    with pytest.raises(InputError) as raised:
        paradigm(skeleton, small())
    assert str(raised.value).startswith("paradigms.yaml: mine: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_exhausted_template_reports_why_draws_were_rejected():
    template = paradigm("noun.singular[class=text] noun.singular[class=text] {a / b}", small(distinct=["noun"]))
    with pytest.raises(Exhausted, match=r"mine: .* 0 pairs .* 4,000 .* \(4,000 because .* twice"):
        next(template.pairs(random.Random(0), 1))
    template = paradigm("noun.singular[class=text] {yes now / no}", small())
    with pytest.raises(Exhausted, match=r"\(4,000 because .* different lengths"):
        next(template.pairs(random.Random(0), 1))


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
    with pytest.raises(Exhausted, match="different lengths"):  # Mandarin counts characters, English entries
        next(paradigm("{男 / 女人}", small(spelling="mandarin")).pairs(random.Random(0), 1))
    assert next(paradigm("{男 / 女人}", small()).pairs(random.Random(0), 1))["sentence_bad"] == "女人"


@pytest.mark.parametrize("change", [{"prefix": "three"}, {"author": "me"}])
def test_a_template_has_its_keys_and_no_others(change):
    description = {"phenomenon": "p", "field": "f", "prefix": "one", "skeleton": "{a / b} ."}
    with pytest.raises(InputError, match=r"paradigms\.yaml: mine: .* keys phenomenon, .*prefix "):
        Paradigm("mine", description | change, small())


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ({"S": {"NP[n]": 1}, "NP": {"x": 1}}, "NP have different numbers of features"),
        ({"S": {"N-P": 1}}, "grammar.yaml: S: N-P: 'N-P' is not a symbol"),
        ({"S": {"adjective.base": 1}}, "no table 'adjective'"),
    ],
)
def test_errors_of_a_grammar_name_the_phrase(phrases, message):
    with pytest.raises(InputError) as raised:
        small(phrases).choice(Symbol("S", None, ()))
    assert message in str(raised.value)


def test_a_table_with_a_row_of_another_length_is_an_error(tmp_path):
    (table := tmp_path / "noun.tsv").write_text("singular\tplural\nboy\tboys\ngirl\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"noun.tsv:3: .* 2 non-empty cells"):
        read_table(table)
