"""Write annotated texts of a few sentences in CoNLL-U."""

from pathlib import Path

from corpora.annotate.layer import Layer, layer_folder, open_layer, part_path, write_layer, write_part
from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.tree import Tree
from corpora.config import SplitConfig
from corpora.sources.conllu import conllu_sentences
from corpora.text import Document, TextStore, write_text_store

# Our own sentences: a passive clause with a relative clause, an object question, a contraction and a repeated sentence.
CONLLU = """\
# newdoc id = one
# text = The fox that sleeps was seen by dogs.
1	The	the	DET	DT	Definite=Def|PronType=Art	2	det	_	_
2	fox	fox	NOUN	NN	Number=Sing	6	nsubj:pass	_	_
3	that	that	PRON	WDT	PronType=Rel	4	nsubj	_	_
4	sleeps	sleep	VERB	VBZ	Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin	2	acl:relcl	_	_
5	was	be	AUX	VBD	Mood=Ind|Number=Sing|Person=3|Tense=Past|VerbForm=Fin	6	aux:pass	_	_
6	seen	see	VERB	VBN	Tense=Past|VerbForm=Part|Voice=Pass	0	root	_	_
7	by	by	ADP	IN	_	8	case	_	_
8	dogs	dog	NOUN	NNS	Number=Plur	6	obl:agent	_	SpaceAfter=No
9	.	.	PUNCT	.	_	6	punct	_	_

# text = What did they  see?
1	What	what	PRON	WP	PronType=Int	4	obj	_	_
2	did	do	AUX	VBD	Tense=Past|VerbForm=Fin	4	aux	_	_
3	they	they	PRON	PRP	Case=Nom|Number=Plur	4	nsubj	_	_
4	see	see	VERB	VB	VerbForm=Inf	0	root	_	SpaceAfter=No
5	?	?	PUNCT	.	_	4	punct	_	_

# newdoc id = two
# text = Dogs don't sleep.
1	Dogs	dog	NOUN	NNS	Number=Plur	4	nsubj	_	_
2-3	don't	_	_	_	_	_	_	_	_
2	do	do	AUX	VBP	_	4	aux	_	_
3	n't	not	PART	RB	Polarity=Neg	4	advmod	_	_
4	sleep	sleep	VERB	VB	VerbForm=Inf	0	root	_	SpaceAfter=No
4.1	elided	elide	VERB	_	_	_	_	_	_
5	.	.	PUNCT	.	_	4	punct	_	_

# text = They sleep.
1	They	they	PRON	PRP	Case=Nom|Number=Plur	2	nsubj	_	_
2	sleep	sleep	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

# newdoc id = three
# text = They sleep.
1	They	they	PRON	PRP	Case=Nom|Number=Plur	2	nsubj	_	_
2	sleep	sleep	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_
"""


def text_store(corpus: Path, sentences: list[str]) -> TextStore:
    """Write and open a corpus's text in the folder store/<corpus>. All `sentences` are in the train split."""
    documents = [Document("text", sentences, "train"), Document("text", ["They sleep."], "valid")]
    write_text_store(
        corpus / "text", documents, "treebank", SplitConfig(seed=0, valid=0.1, test=0.1), {"source": "text"}
    )
    return TextStore(corpus / "text")


def write_trees(
    corpus: Path, text: TextStore, trees: list[Tree], name: str = "conllu", part_sentences: int = 2
) -> Layer:
    """Write a layer with the trees of a text, and open it."""
    folder = layer_folder(corpus, name)
    for number, start in enumerate(range(0, len(text), part_sentences)):
        write_part(part_path(folder, number), trees[start : start + part_sentences])
    write_layer(folder, text, part_sentences)
    return open_layer(corpus, name, text)


def annotated(folder: Path, conllu: str = CONLLU) -> tuple[TextStore, Layer]:
    """Write a text in CoNLL-U and its layer to a corpus folder. The last sentence becomes the valid split."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "text.conllu"
    file.write_text(conllu, encoding="utf-8")
    parsed = list(conllu_sentences(file))
    documents = [Document("text", [sentence.text], "train") for sentence in parsed[:-1]]
    documents.append(Document("text", [parsed[-1].text], "valid"))
    write_text_store(
        folder / "text", documents, "treebank", SplitConfig(seed=0, valid=0.1, test=0.1), {"source": "text"}
    )
    text = TextStore(folder / "text")
    trees = [tree_of(sentence, text.sentence(index)) for index, sentence in enumerate(parsed)]
    return text, write_trees(folder, text, trees)
