"""Files of the three diagnostics, with the items that the paper prints."""

from eval.diagnostics.config import DiagnosticConfig

FILES = {
    "CPRAG-102": {
        "CPRAG-102.tsv": "item\tcontext_s1\tcontext_s2\texpected\twithin_category\tbetween_category\tconstraint\n"
        "0\tHe caught the pass and scored another touchdown.\tThere was nothing he enjoyed more than a good game of\t"
        "football\tbaseball\tmonopoly\tH\n"
        "1\t“I’m one!” the child exclaimed.\tHe was pretending to be a\tdonkey\thorse\tpig\tL\n"
    },
    "ROLE-88": {
        "ROLE-88.tsv": "item\tcontext\texpected\texp_cloze\ttarget\ttgt_cloze\ttgt_cloze(strict)\n"
        "68-b\tthe restaurant owner forgot which waitress the customer had \ttipped|talked to\t0.26\tserved\t0.03\t0\n"
        "68-a\tthe restaurant owner forgot which customer the waitress had \tserved\t0.36\tserved\t0.36\t0.36\n"
    },
    "NEG-136": {
        "NEG-136-SIMP.tsv": "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
        "4\tA robin is (a|an)\tA robin is not (a|an)\tbird\ttree\n"
        "12\tA hammer is (a|an)\tA hammer is not (a|an)\ttool\tinsect\n",
        "NEG-136-NAT.tsv": "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\tlicensing\n"
        "5\tMost smokers find that quitting is very\tMost smokers find that quitting isn't very\tdifficult\teasy\tY\n",
    },
}
FOLDERS = {"cprag": "CPRAG-102", "role": "ROLE-88", "neg": "NEG-136"}


def write_files(folder):
    """Write the folders of the three diagnostics; return the folder above them."""
    for name, files in FILES.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text)
    return folder


def config(name, folder, **values):
    default = {"shuffles": 3, "seed": 1, "quote_marks": "as_published", "top_words": 5}
    return DiagnosticConfig(name=name, path=str(folder / FOLDERS[name]), **default | values)
