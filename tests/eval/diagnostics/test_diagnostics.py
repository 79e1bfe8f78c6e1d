"""Questions of the diagnostics: the examples of the paper, counts of the real files, errors for broken files."""

from collections import Counter

import pytest

from eval.diagnostics.questions import load_questions
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.diagnostics import FOLDERS, config, write_files


def rows(questions, **values):
    for column, value in values.items():
        questions = questions[questions[column] == value]
    return [tuple(row) for row in questions[["context", "candidate", "role"]].to_numpy().tolist()]


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path)


def test_questions_of_cprag_are_as_in_the_paper(folder):
    """Tables 1 and 4: the first sentence shuffled, the second cut to the two words before the target."""
    questions = load_questions(config("cprag", folder)).rows
    second = "There was nothing he enjoyed more than a good game of"
    first = "He caught the pass and scored another touchdown."
    assert rows(questions, item="0", condition="original") == [
        (f"{first} {second}", "football", "expected"),
        (f"{first} {second}", "baseball", "within_category"),
        (f"{first} {second}", "monopoly", "between_category"),
    ]
    assert rows(questions, item="0", condition="truncated") == [(f"{first} game of", "football", "expected")]
    shuffled = questions[(questions["item"] == "0") & (questions["condition"] == "shuffled")]
    cut = questions[(questions["item"] == "0") & (questions["condition"] == "shuffled_truncated")]
    assert shuffled["trial"].tolist() == cut["trial"].tolist() == [1, 2, 3]
    for long, short in zip(shuffled["context"], cut["context"], strict=True):
        sentence = long.removesuffix(f" {second}")
        assert short == f"{sentence} game of"
        assert sentence.endswith(".")
        assert Counter(sentence[:-1].split()) == Counter(first[:-1].split())
    assert len(set(shuffled["context"])) == 3
    assert set(questions["group"]) == {"H", "L"}


def test_shuffles_depend_only_on_the_seed(folder):
    one, same, longer, other = (
        load_questions(config("cprag", folder, **values))
        for values in ({}, {}, {"shuffles": 5}, {"seed": 2})
    )  # fmt: skip
    assert one.digest == same.digest
    assert len({one.digest, longer.digest, other.digest}) == 3
    assert longer.rows[~longer.rows["trial"].isin([4, 5])].reset_index(drop=True).equals(one.rows)
    assert set(one.rows["context"]) != set(other.rows["context"])


def test_quote_marks_are_curly_or_straight(folder):
    curly = load_questions(config("cprag", folder)).rows
    straight = load_questions(config("cprag", folder, quote_marks="straight")).rows
    assert rows(curly, item="1")[0][0] == "“I’m one!” the child exclaimed. He was pretending to be a"
    assert rows(straight, item="1")[0][0] == '"I\'m one!" the child exclaimed. He was pretending to be a'


def test_questions_of_role_are_as_in_the_paper(folder):
    """Tables 2 and 7: `one` for the object, `other` for the subject."""
    questions = load_questions(config("role", folder)).rows
    start = "the restaurant owner forgot which"
    contexts = {
        "original": f"{start} waitress the customer had",
        "generic_object": f"{start} one the customer had",
        "generic_subject": f"{start} waitress the other had",
        "generic_both": f"{start} one the other had",
    }
    for condition, context in contexts.items():
        questions_of_condition = rows(questions, item="68-b", condition=condition)
        assert questions_of_condition[:2] == [(context, "tipped", "expected"), (context, "talked", "expected")]
        assert questions_of_condition[2:] == ([(context, "served", "target")] if condition == "original" else [])
    assert questions.loc[questions["role"] == "target", "cloze"].tolist() == [0.03, 0.36]
    assert questions.loc[questions["role"] == "expected", "cloze"].unique().tolist() == [0.26, 0.36]


def test_questions_of_neg_are_as_in_the_paper(folder):
    """Table 13: the article fits the candidate."""
    questions = load_questions(config("neg", folder)).rows
    assert rows(questions, item="SIMP-12") == [
        ("A hammer is a", "tool", "true"),
        ("A hammer is an", "insect", "false"),
        ("A hammer is not a", "tool", "false"),
        ("A hammer is not an", "insect", "true"),
    ]
    assert rows(questions, item="NAT-5", role="true") == [
        ("Most smokers find that quitting is very", "difficult", "true"),
        ("Most smokers find that quitting isn't very", "easy", "true"),
    ]
    assert rows(questions, group="Y") == rows(questions, item="NAT-5")


def test_published_files_have_the_numbers_of_questions_of_the_paper(real_data):
    root = real_data / "lm_diagnostics"
    cprag = load_questions(config("cprag", root, shuffles=100)).rows
    assert cprag.groupby(["condition", "role"]).size().to_dict() == {
        **{("original", role): 34 for role in ("expected", "within_category", "between_category")},
        ("truncated", "expected"): 34,
        ("shuffled", "expected"): 3400,
        ("shuffled_truncated", "expected"): 3400,
    }
    assert set(cprag["trial"].dropna()) == set(range(1, 101))
    role = load_questions(config("role", root)).rows
    assert role.groupby("condition")["item"].nunique().to_dict() == dict.fromkeys(
        ("original", "generic_object", "generic_subject", "generic_both"), 88
    )
    assert rows(role, item="68-a", role="target") == [
        ("the restaurant owner forgot which customer the waitress had", "served", "target")
    ]
    neg = load_questions(config("neg", root)).rows
    assert neg.groupby(["condition", "role"]).size().to_dict() == {
        (f"{subset}_{polarity}", role): items
        for subset, items in (("simp", 18), ("nat", 16))
        for polarity in ("affirmative", "negative")
        for role in ("true", "false")
    }
    assert neg.drop_duplicates("item")["group"].value_counts().to_dict() == {"Y": 8, "N": 8}


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("cprag", "\texpected\t", "\texpect\t", "line 2: .*expected"),
        ("cprag", "\tH\n", "\n", "line 2"),
        ("cprag", "\tH\n", "\tX\n", "line 2: .*X.*constraint"),
        ("cprag", "\tfootball\t", "\t \t", "line 2: .*expected"),
        ("cprag", "\n1\t", "\n0\t", "line 3: .*item 0"),
        ("role", "68-b", "68", "line 2: .*item"),
        ("role", "68-b", "69-b", "69-a"),
        ("role", "customer had ", "customer ran", "line 2: .*context"),
        ("role", "0.26", "1.26", "line 2: .*exp_cloze"),
        ("role", "item\t", "item\xff", r"ROLE-88\.tsv"),
        ("neg", "robin is (a|an)", "robin is a", "line 2: .*context_aff"),
        ("neg", "\tY\n", "\tyes\n", "line 2: .*licensing"),
    ],
)
def test_a_broken_row_raises_an_error_that_names_the_line(folder, name, old, new, message):
    for path in (folder / FOLDERS[name]).iterdir():
        path.write_text(path.read_text().replace(old, new, 1), encoding="latin-1" if "\xff" in new else "utf-8")
    with pytest.raises(InputError, match=message):
        load_questions(config(name, folder))


def test_missing_folders_and_invalid_settings_raise_errors(tmp_path):
    with pytest.raises(InputError, match=r"benchmark\.path=.*no file ROLE-88\.tsv"):
        load_questions(config("role", tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"PAIRSCALE_DATA .* lm_diagnostics/CPRAG-102/"):
        load_questions(compose("eval", ["benchmark=cprag", "paths.data=null"]).benchmark)
    for override, message in (
        ("benchmark.quote_marks=none", r"benchmark\.quote_marks=none: .*must be one of as_published, straight"),
        ("benchmark.top_words=0", r"benchmark\.top_words=0: .*must be .*from 1"),
        ("benchmark.shuffles=2", r"benchmark\.seed=null: benchmark\.shuffles=2"),
    ):
        with pytest.raises(ConfigError, match=message):
            compose("eval", ["benchmark=role", override])
