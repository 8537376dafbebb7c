#!/usr/bin/env python3
"""Where does the gateway's time go under load? A flame graph and a table of the dearest functions for each of the main scenarios.

    python -m venv /tmp/py-spy && /tmp/py-spy/bin/pip install py-spy
    python benchmarks/load/flame.py --py-spy /tmp/py-spy/bin/py-spy --out flames
    python benchmarks/load/flame.py --of ../before --out flames-before          # another checkout of this project
    python benchmarks/load/flame.py --diff flames-before flames                 # what got cheaper, what dearer

py-spy samples the gateway from outside (Linux: as root, or with the right to trace), when one of its threads has the GIL.
For each scenario there are NAME.svg, NAME.folded (py-spy's raw format, stacks with counts) and NAME.md, the table: ``own`` is the
share of samples in the function itself, ``with``
that of samples with it anywhere in the stack.
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))      # a checkout need not be installed
from benchmarks.load.peers import PYTHON, our_config
from benchmarks.load.processes import ROOT, free_port, running, wait_for
from benchmarks.load.run import one_load, upstream

MAIN = ("whole-32", "streams-20", "large-prompt")
ROWS = 25
FORMATS = {"svg": "flamegraph", "folded": "raw"}


def short(frame: str) -> str:
    """`run (gateway/pipeline/serve.py)`: without the line, and without the way to the package."""
    name, _, place = frame.rpartition(" (")
    path = place.rstrip(")").rsplit(":", 1)[0]
    for root in ("site-packages/", "/lib/python", f"{ROOT}/"):
        path = path.rsplit(root, 1)[-1]
    at = path.find("gateway/")
    return f"{name} ({path[at:] if at > 0 else path})"


def counted(folded: str) -> tuple[Counter[str], Counter[str], int]:
    """Samples by function: in itself, with it anywhere in the stack, and all."""
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, n = line.rpartition(" ")
        frames = [short(frame) for frame in stack.split(";")]
        own[frames[-1]] += int(n)
        for frame in set(frames):
            within[frame] += int(n)
    return own, within, own.total()


def table(folded: str, rows: int = ROWS) -> str:
    own, within, total = counted(folded)
    lines = ["| function | own % | with % |", "|---|---:|---:|"]
    lines += [f"| `{name}` | {n / total:.1%} | {within[name] / total:.1%} |" for name, n in own.most_common(rows)]
    return "\n".join(lines) + "\n"


def difference(before: str, after: str, rows: int = ROWS) -> str:
    """Functions whose share of a scenario changed most."""
    (_, old, n_old), (_, new, n_new) = counted(before), counted(after)
    change = {name: new[name] / max(1, n_new) - old[name] / max(1, n_old) for name in {*old, *new}}
    lines = ["| function | before % | after % |", "|---|---:|---:|"]
    for name in sorted(change, key=lambda name: -abs(change[name]))[:rows]:
        lines.append(f"| `{name}` | {old[name] / max(1, n_old):.1%} | {new[name] / max(1, n_new):.1%} |")
    return "\n".join(lines) + "\n"


def record(given: argparse.Namespace, name: str) -> None:
    """One scenario, sampled once for each format: both are of the same kind of load, not of the same moment."""
    load = SimpleNamespace(load_core=given.load_core, seconds=None)
    with tempfile.TemporaryDirectory() as folder, upstream(Path(folder), load) as address:
        port, config, log = free_port(), Path(folder) / "gateway.toml", Path(folder) / "gateway.log"
        config.write_text(our_config(address, port, failover=False, workers=1))
        command = f"env -C {given.of.resolve()} PYTHONPATH={given.of.resolve()} {PYTHON} -m gateway serve --config {config}"
        with running(command, given.proxy_core, log) as child:
            wait_for(port, "/livez", child, log)
            one_load(f"http://127.0.0.1:{port}/v1", name, load, seconds=0.5)
            for suffix, form in FORMATS.items():
                spy = subprocess.Popen([given.py_spy, "record", "--gil", "--pid", str(child.pid), "--rate", str(given.rate),
                                        "--format", form, "--duration", f"{given.seconds:.0f}",
                                        "--output", str(given.out / f"{name}.{suffix}")],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                one_load(f"http://127.0.0.1:{port}/v1", name, load, seconds=given.seconds + 1)
                _, said = spy.communicate(timeout=60)
                if spy.returncode:
                    raise SystemExit(said.decode(errors="replace"))
            time.sleep(0.2)
    (given.out / f"{name}.md").write_text(table((given.out / f"{name}.folded").read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", default=",".join(MAIN))
    parser.add_argument("--out", type=Path, default=Path("flames"))
    parser.add_argument("--of", type=Path, default=ROOT, help="a checkout of this project")
    parser.add_argument("--py-spy", default=shutil.which("py-spy") or "py-spy")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--proxy-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    parser.add_argument("--diff", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="print tables of two earlier results and stop")
    given = parser.parse_args()
    names = given.scenarios.split(",")
    if given.diff:
        for name in names:
            before, after = ((folder / f"{name}.folded").read_text() for folder in given.diff)
            print(f"**{name}**\n\n{difference(before, after)}")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        record(given, name)
        print(f"**{name}**\n\n{(given.out / f'{name}.md').read_text()}")


if __name__ == "__main__":
    main()
