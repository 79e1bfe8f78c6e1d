"""Rules that split running text into sentences, for sources that do not have one sentence per line.

A sentence ends after . ! ? (with closing quotes and brackets) if white space and a capital, digit or opening mark
follow, but not after an abbreviation or an initial; and after 。！？ with their closing marks, whatever follows.
"""

import re

# Abbreviations that often stand before a name, a number or a capital; single letters (initials) count as well.
_ABBREVIATIONS = """
    mr mrs ms dr prof rev hon st sr jr gen col maj capt lt sgt adm gov sen rep pres messrs mme mlle
    vs no nos vol vols pp fig figs ch sec art ed eds al cf ca approx dept univ inc ltd co corp bros mt ft
    jan feb mar apr jun jul aug sept sep oct nov dec e.g i.e u.s u.k
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
_END = re.compile(
    r"""(?P<western>[.!?…]+["'”’»)\]]*)\s+(?=["'“‘«(\[]*[^\W_a-z])   # before a capital, a digit or another script
      | (?P<chinese>[。！？]+["'”’」』）】]*)\s*""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.]*$")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, without the white space between them.

    >>> split_sentences("Dr. Smith left. He was late.")
    ['Dr. Smith left.', 'He was late.']
    """
    sentences = []
    start = 0
    for match in _END.finditer(text):
        if match["western"] == "." and _abbreviated(text[start : match.start()]):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _abbreviated(before: str) -> bool:
    match = _LAST_WORD.search(before)
    assert match
    word = match[0].lower()
    return word in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i")
