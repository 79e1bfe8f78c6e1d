"""Numbers of training and scoring before both are rebuilt, which the new code must reproduce.

    python -m tests.golden.make_scores    at commit 0dba26c8, the last one before the redesign of issue 50

It trains a small model of every kind on inputs/text.txt (or text_zh.txt), scores inputs/pairs.csv and the other files
of inputs/ with it, and writes next to itself, one row per number or few:

weights.csv       of each trained model's tensors: shape, sum, norm, and a sum weighted by position; no names
metrics.csv       losses and perplexities during training
scores.csv        scores of pairs by kind of model, scoring settings, method, template and pair
tokens.csv        log-probability, place and <unk> of each token of three sentences
ids.csv           ids of sentences by the tokenizer of each kind of model
cloze.csv         probabilities and ranks of next words (benchmarks cprag, role and neg)
regions.csv       surprisals of regions (benchmark syntaxgym), and success.csv: which predictions hold
ratings.csv       sentences with ratings, and their counts
words.csv         surprisals of words (python -m eval.surprisal)
generated.csv     pairs that python -m eval.generate writes: the first of each paradigm and a digest of twenty

Everything comes from commands, from the columns of their files, and from `eval.load_scorer`; what reads them is in
`run_of` and the functions `read_*`. tests/eval/test_golden_scores.py compares and states the tolerances.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from safetensors.torch import load_file

from eval import load_scorer
from tests.golden.kinds import INPUTS, KINDS, STUDIES, TOKENIZERS, write_given
from tests.support.commands import run_command

FOLDER = Path(__file__).parent
CPU = ["trainer.threads=1", "trainer.accelerator=cpu"]  # progress stays true: eval prints long tables without it
METHODS = ["lp", "mean_lp", "pen_lp", "slor", "morcela", "one_prefix", "two_prefix", "pll"]
METHODS += ["in_template_lp", "in_template_mean_lp", "in_template_pen_lp", "in_template_comparative_lp"]
PROMPTS = ["yes_no", "ab_prompt"]  # not of n-gram models
VOTES = ["vote_l", "vote_p", "vote_mix_l3", "vote_mix_p3"]  # not of `own`, where the scores of many pairs almost tie
VALUES = ["method.morcela.beta=0.7", "method.morcela.gamma=-1.5"]
SETTINGS = {  # of scoring, besides the usual ones, by the name of their rows in scores.csv
    "eos": ["policy.context=eos", "policy.context_tokens=3", "policy.score_eos=true", "method=[lp]"],
    "text": ["policy.context=text", "policy.context_text='The cats sleep .'", "policy.score_eos=false", "method=[lp]"],
    "skip": ["policy.unk=skip", "method=[lp,mean_lp,slor,one_prefix,two_prefix,pll]",
             "method.one_prefix.prefix_span=first", "method.two_prefix.prefix_span=last"],
    "published": ["method=[one_prefix,two_prefix,in_template_lp]", "method.in_template_lp.scored=target",
                  "method.one_prefix.prefix_span=as_published", "method.two_prefix.prefix_span=as_published"],
    "original": ["policy.pll=original", "method=[pll]"],
}  # fmt: skip
OF_MASKED = ("skip", "original")  # settings of masked models; the others have all but the last

ITEMS = {
    "cprag": [f"benchmark.path={INPUTS}/CPRAG-102", "benchmark.top_words=3", "benchmark.shuffles=1"],
    "role": [f"benchmark.path={INPUTS}/ROLE-88", "benchmark.top_words=3"],
    "neg": [f"benchmark.path={INPUTS}/NEG-136", "benchmark.top_words=3"],
    "syntaxgym": [f"benchmark.path={INPUTS}/suites"],
}


def items_of(study: str) -> tuple[str, ...]:
    """Return the benchmarks of ITEMS that a study is scored on: masked models have no surprisals of regions."""
    all_items = {"own": tuple(ITEMS), "masked": ("cprag", "role", "neg"), "chinese": ()}
    return all_items.get(study, ("cprag", "syntaxgym"))


def command(*words: str) -> None:
    """Run `python -m WORDS` to its end. Raises RuntimeError with what it printed if it fails."""
    done = run_command(*words)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def paths(folder: Path) -> list[str]:
    return [f"paths.{name}={folder}/{name}" for name in ("store", "runs", "reports")]


def run_of(folder: Path, kind: str) -> Path:
    """Return the run folder of a kind of model."""
    (run,) = (folder / "runs" / KINDS[kind].study).glob(f"{kind}-*")
    return run


def make_study(folder: Path, study: str) -> None:
    """Train or load the models of a study and score them on everything."""
    common = [*paths(folder), *CPU, f"study={study}"]
    pairs = [f"benchmark.path={INPUTS}/pairs{'_zh' if study == 'chinese' else ''}.csv"]
    language = "benchmark.language=zh" if study == "chinese" else "benchmark.language=en"
    local = ["benchmark=local", *pairs, language, "scoring.token_pairs=all"]
    counted = f"unigrams.text={INPUTS}/text.txt"
    first = ["eval", *common, counted, *local, "benchmark.name=usual"]
    for name, kind in KINDS.items():
        if kind.study == study and kind.train:
            command("train", *kind.train, *common, f"model.name={name}")
        elif kind.study == study:
            model = [f"model={kind.given}", f"model.name={name}", *write_given(name, folder / "given" / name)]
            command(*first, *model, "method=[lp,pll]")
    methods, values = METHODS + (PROMPTS if study != "counted" else []), VALUES
    if study not in ("own", "counted"):
        methods, values = methods + VOTES, values + [f"method.{vote}.trials=2" for vote in VOTES]
    command(*first, f"method=[{','.join(methods)}]", *values)
    settings = OF_MASKED if study == "masked" else tuple(SETTINGS)[:-1]
    for name in settings:
        command("eval", *common, counted, *local, f"benchmark.name={name}", *SETTINGS[name])
    sentences = "{sentence:null,rating:null,good:good,bad:bad,good_rating:good_rating,bad_rating:bad_rating}"
    rated = ["benchmark=ratings", *pairs, f"benchmark.columns={sentences}"]
    command("eval", *common, counted, *rated)
    for name, values in ITEMS.items():
        if name in items_of(study):
            command("eval", *common, f"benchmark={name}", *values)
    if "syntaxgym" in items_of(study):
        text = ["eval.surprisal", *common, f"text={INPUTS}/documents.txt"]
        command(*text)
        windows = ["surprisal.context=document", "surprisal.window=24", "surprisal.step=8"]
        command(*text, *windows, f"paths.reports={folder}/reports/windows")


def read_folder(run: Path, benchmark: str) -> Path:
    """Return the folder of a run's scores of a benchmark, whatever the settings."""
    (folder,) = (path for path in (run / "scores").iterdir() if path.name.partition("+")[0] == benchmark)
    return folder


def read_scores(run: Path, masked: bool) -> pd.DataFrame:
    """Return scores of pairs by settings and method; of votes, the mean over trials."""
    keys = ["settings", "method", "template", "pair_id"]
    tables = []
    for settings in ("usual", *(OF_MASKED if masked else tuple(SETTINGS)[:-1])):
        for file in sorted(read_folder(run, settings).glob("*.parquet")):
            if file.stem not in ("items", "tokens"):
                table = pd.read_parquet(file).assign(settings=settings, method=file.stem)
                if table["trial"].notna().any():
                    table = table.groupby(["settings", "method", "pair_id"], sort=False)[["good", "bad"]].mean()
                tables.append(table.reset_index())
    numbers = ["good", "bad", "good_tokens", "bad_tokens", "good_unk", "bad_unk", "order"]
    return pd.concat(tables, ignore_index=True).reindex(columns=[*keys, *numbers])


def read_tokens(run: Path, pairs: list[str]) -> pd.DataFrame:
    """Return the tokens of the good sentences of some pairs."""
    tokens = pd.read_parquet(read_folder(run, "usual") / "tokens.parquet")
    tokens = tokens[(tokens["side"] == "good") & tokens["pair_id"].isin(pairs)]
    return tokens[["pair_id", "position", "start", "end", "logprob", "unk"]]


def read_cloze(run: Path, benchmarks: list[str]) -> pd.DataFrame:
    """Return probabilities of candidates, and of the most probable words after contexts that are not drawn."""
    tables = []
    for benchmark in benchmarks:
        folder = read_folder(run, benchmark)
        asked = pd.read_parquet(folder / "cloze.parquet").rename(columns={"candidate": "word"})
        top = pd.read_parquet(folder / "topk.parquet").assign(role=lambda rows: "top " + rows["place"].astype(str))
        tables.append(pd.concat([asked, top]).assign(benchmark=benchmark))
    table = pd.concat(tables)
    keys = ["benchmark", "item", "condition", "role", "word"]
    table["place"] = table.groupby(keys).cumcount()  # among contexts of one condition, such as those with "a" and "an"
    return table[[*keys, "place", "prob", "rank", "n_tokens"]]


def read_weights(run: Path) -> pd.DataFrame:
    """Return shape, sum, norm and weighted sum of each tensor of a run's model, whatever they are called."""
    (file,) = (path for path in (run / "model.safetensors", run / "model" / "model.safetensors") if path.exists())
    rows = []
    for tensor in load_file(file).values():
        flat = tensor.double().flatten().numpy()
        shape = "x".join(map(str, tensor.shape))
        rows.append((shape, flat.sum(), np.linalg.norm(flat), flat @ np.cos(np.arange(len(flat)))))
    table = pd.DataFrame(rows, columns=["shape", "sum", "norm", "wave"])
    return table.sort_values(["shape", "norm", "wave"], ignore_index=True)


def read_ids(run: Path, kind: str) -> pd.DataFrame:
    """Return the ids of sixty sentences of the text and of all pairs, as the scorer of a run reads them."""
    ending = "_zh" if KINDS[kind].study == "chinese" else ""
    lines = (INPUTS / f"text{ending}.txt").read_text(encoding="utf-8").splitlines()
    pairs = pd.read_csv(INPUTS / f"pairs{ending}.csv")
    sentences = [*[line for line in lines if line][:60], *pairs["good"], *pairs["bad"]]
    ids = [" ".join(map(str, scores.ids)) for scores in load_scorer(run).score(sentences)]
    return pd.DataFrame({"sentence": sentences, "ids": ids})


def read_kind(folder: Path, kind: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each table that has numbers of a kind of model."""
    study, run = KINDS[kind].study, run_of(folder, kind)
    masked, counted = study == "masked", kind.startswith("ngram")
    if KINDS[kind].train and not counted:
        yield "weights", read_weights(run)
    if KINDS[kind].train:
        yield "metrics", pd.read_csv(run / "metrics.csv")
    yield "scores", read_scores(run, masked)
    yield "tokens", read_tokens(run, ["2", "5"] if study == "chinese" else ["2", "5", "7"])
    yield (
        "ratings",
        pd.read_parquet(read_folder(run, "ratings") / "sentences.parquet").drop(columns=["rating", "label"]),
    )
    if kind in TOKENIZERS:
        yield "ids", read_ids(run, kind)
    if items := [name for name in items_of(study) if name != "syntaxgym"]:
        yield "cloze", read_cloze(run, items)
    if "syntaxgym" in items_of(study):
        suites = read_folder(run, "syntaxgym")
        yield "regions", pd.read_parquet(suites / "regions.parquet").drop(columns=["name", "content"])
        yield "success", pd.read_parquet(suites / "success.parquet").drop(columns=["formula", "circuit"])
        for context, reports in (("text", "reports"), ("document", "reports/windows")):
            words = pd.read_csv(folder / reports / study / "surprisal" / "documents" / f"{run.name}.csv")
            yield "words", words.drop(columns="surprisal_nats").assign(context=context)


def read_study(folder: Path, study: str) -> dict[str, pd.DataFrame]:
    """Make a study and return its rows of each table, with the kind of model first."""
    make_study(folder, study)
    parts: dict[str, list[pd.DataFrame]] = {}
    for kind in (name for name, of in KINDS.items() if of.study == study):
        for name, rows in read_kind(folder, kind):
            rows = rows.loc[:, rows.notna().any() | (name == "scores")]
            parts.setdefault(name, []).append(pd.concat([pd.Series(kind, rows.index, name="kind"), rows], axis=1))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def read_generated(folder: Path) -> pd.DataFrame:
    """Generate pairs; return of each paradigm how many there are, a digest of all, and the first."""
    rows = []
    known = folder / "words.txt"
    known.write_text(
        "\n".join(sorted(set((INPUTS / "text.txt").read_text(encoding="utf-8").split()))), encoding="utf-8"
    )
    for name, values in (
        ("en", ["benchmark.seed=1"]),
        ("en known words", ["benchmark.seed=2", f"benchmark.vocabulary={known}"]),
        ("zh", ["benchmark.seed=1", "benchmark.language=zh"]),
    ):
        reports = folder / name.replace(" ", "_")
        command("eval.generate", *values, "benchmark.pairs=20", f"paths.reports={reports}")
        for file in sorted(reports.rglob("*.jsonl")):
            pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            sentences = [[pair["sentence_good"], pair["sentence_bad"]] for pair in pairs]
            digest = hashlib.sha256(json.dumps(pairs, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]
            rows.append((name, file.stem, len(pairs), digest, *sentences[0]))
    return pd.DataFrame(rows, columns=["kind", "paradigm", "pairs", "digest", "good", "bad"])


def main() -> None:
    with TemporaryDirectory() as temporary:
        studies = [read_study(Path(temporary), study) for study in STUDIES]
        tables = {"generated": read_generated(Path(temporary))}
    for name in dict.fromkeys(name for study in studies for name in study):
        tables[name] = pd.concat([study[name] for study in studies if name in study], ignore_index=True)
    for name, table in tables.items():
        table.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n", float_format="%.8g")


if __name__ == "__main__":
    main()
