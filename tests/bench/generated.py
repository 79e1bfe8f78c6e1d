"""Speed of generating pairs of each paradigm, on one core: `python tests/bench/generated.py`.

Times are CPU times of the process, as the machine may be shared; compiling a paradigm is counted separately.
"""

from __future__ import annotations

import argparse
import random
import time

from eval.benchmarks.generated import LANGUAGES, grammar_of, paradigm_of, paradigms_of
from pairscale.errors import InputError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000, help="of each paradigm")
    arguments = parser.parse_args()
    for language in LANGUAGES:
        rates, compiling = {}, 0.0
        grammar = grammar_of(language)
        for name in paradigms_of(language):
            started = time.process_time()
            paradigm = paradigm_of(language, name, grammar)
            compiled = time.process_time()
            try:
                count = sum(1 for _ in paradigm.pairs(random.Random(1), arguments.pairs))
            except InputError as error:
                print(error)
                continue
            compiling += compiled - started
            rates[name] = count / (time.process_time() - compiled)
        slowest = sorted(rates, key=rates.__getitem__)
        mean = len(rates) * arguments.pairs / sum(arguments.pairs / rate for rate in rates.values())
        print(f"{language}: {len(rates)} paradigms, {mean:,.0f} pairs/s, compiling {compiling:.1f} s; slowest:")
        for name in slowest[:8]:
            print(f"  {name:50} {rates[name]:10,.0f}")
        print(f"  at least 5,000: {sum(rate >= 5000 for rate in rates.values())} of {len(rates)}")


if __name__ == "__main__":
    main()
