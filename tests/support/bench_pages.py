"""The tables of measured speeds in docs/benchmarks.md, and the sentences of other pages that quote them."""

import re

from tests.support import ROOT, wrapped


def bench_row(start: str) -> list[str]:
    """Return the cells of the only row of docs/benchmarks.md with this first cell."""
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def faster(cell: str) -> str:
    """Return the factor of a cell: "1.44" of "1.44x (1.31 to 1.83; 1)"."""
    return cell.partition("x")[0]


def training_speed() -> str:
    """Return the speed of the published models relative to their authors' scripts."""
    names = ("LSTM, fp32", "Transformer-XL, fp32", "LSTM, bf16", "Transformer-XL, bf16")
    lstm, txl, lstm_bf16, txl_bf16 = (faster(bench_row(name)[3]) for name in names)
    return wrapped(
        f"On two CPU cores of a shared machine, the published LSTM with 50,000 words trained {lstm} times as fast as "
        f"its authors' script, and the published Transformer-XL {txl} times as fast. In bf16 (`precision=bf16`) they "
        f"trained {lstm_bf16} and {txl_bf16} times as fast as the scripts in fp32 (medians of five rounds). "
        "`make bench` measures yours."
    )


def scoring_speed() -> str:
    """Return the speed and the agreement of scores relative to libraries that score the same pairs."""
    ours, bf16 = (float(bench_row(f"pairscale, {name}")[2].split()[0]) for name in ("fp32", "bf16"))
    peers = [bench_row(name) for name in ("minicons 0.3.39", "lm-evaluation-harness 0.4.13")]
    minicons, harness = (float(row[2].split()[0]) for row in peers)
    differ = max((row[1] for row in peers), key=float)
    bert = re.search(r"([\d.]+)x", bench_row("original")[3])
    assert bert is not None
    return wrapped(
        "Sentences and prompts that begin in the same way are read together, and what they share is read once. A GPT-2 "
        f"of 124M weights scored six paradigms of BLiMP on two cores {ours / minicons:.1f} times as fast as minicons "
        f"and {ours / harness:.1f} times as fast as lm-evaluation-harness (in bf16, {bf16 / minicons:.1f} and "
        f"{bf16 / harness:.1f} times). A BERT of 110M weights scored them {bert[1]} times as fast as minicons. In fp32 "
        f"the sums of all three agree to {differ}."
    )


SPEED_BLOCKS = {"speed of training": training_speed, "speed of scoring": scoring_speed}
