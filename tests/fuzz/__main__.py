"""So many generated inputs, and what came of them. ``scripts/fuzz [--inputs 1000000] [--only NAME] [--seed 1] [--keep]``

``--keep`` writes small inputs with outcomes that the corpus does not have yet, and minimised findings, into tests/fuzz/corpus.
"""
import argparse
import logging
import sys
import time
from collections.abc import Iterator
from random import Random

import msgspec

from tests.arch.source import ROOT
from tests.fuzz.engine import Finding, Mutator, attempt, smaller
from tests.fuzz.targets import TARGETS

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
KEPT, KEPT_BYTES = 40, 1_500                     # of each target
POOLED_BYTES = 8_192
MOST_FINDINGS = 5


class Result(msgspec.Struct):
    target: str
    inputs: int
    seconds: float
    outcomes: dict[str, bytes]
    findings: list[Finding]


def corpus(target: str) -> list[bytes]:
    path = CORPUS / f"{target}.json"
    return [text.encode("latin-1") for text in msgspec.json.decode(path.read_bytes(), type=list[str])] if path.exists() else []


def keep(result: Result) -> None:
    """What has an outcome of its own, smallest first; findings always."""
    target = TARGETS[result.target]
    found: dict[bytes, None] = dict.fromkeys(corpus(result.target))
    known = {str(attempt(result.target, target.run, data)) for data in found}
    for outcome, data in sorted(result.outcomes.items(), key=lambda pair: len(pair[1])):
        if len(found) < KEPT and len(data) <= KEPT_BYTES and outcome not in known:
            found[data] = None
    found |= dict.fromkeys(finding.data for finding in result.findings if len(finding.data) <= KEPT_BYTES)
    CORPUS.mkdir(exist_ok=True)
    lines = ",\n".join(msgspec.json.encode(data.decode("latin-1")).decode() for data in found)
    (CORPUS / f"{result.target}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def fuzz(name: str, inputs: int, seed: int) -> Result:
    target = TARGETS[name]
    mutator = Mutator([*target.seeds, *corpus(name)], Random(f"{seed} {name}"))
    outcomes: dict[str, bytes] = {}
    findings: list[Finding] = []
    began = time.monotonic()
    for data in made(mutator, inputs):
        got = attempt(name, target.run, data)
        if isinstance(got, Finding):
            if got.what.partition(":")[0] not in {one.what.partition(":")[0] for one in findings} or len(findings) < MOST_FINDINGS:
                findings.append(smaller(got, target.run))
            continue
        if got not in outcomes:
            if len(data) <= POOLED_BYTES:
                mutator.keep(data)
            outcomes[got] = data
        elif len(data) < len(outcomes[got]):
            outcomes[got] = data
    return Result(name, inputs, time.monotonic() - began, outcomes, findings)


def made(mutator: Mutator, n: int) -> Iterator[bytes]:
    yield from mutator.seeds[:n]
    for _ in range(n - len(mutator.seeds)):
        yield mutator.make()


def main() -> int:
    options = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--only", default="", help="targets whose name begins so")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", action="store_true")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    names = [name for name in TARGETS if name.startswith(chosen.only)]
    shares = sum(TARGETS[name].share for name in names)
    total, bad = 0, 0
    for name in names:
        result = fuzz(name, round(chosen.inputs * TARGETS[name].share / shares) + 1, chosen.seed)
        total, bad = total + result.inputs, bad + len(result.findings)
        print(f"{name:26} {result.inputs:>9,} inputs {result.inputs / result.seconds:>8,.0f}/s {len(result.outcomes):>6} outcomes "
              f"{len(result.findings)} findings", flush=True)
        for finding in result.findings:
            print(f"  ! {finding.what}\n    {finding.data[:500]!r}", flush=True)
        if chosen.keep:
            keep(result)
    print(f"{total:,} inputs, {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
