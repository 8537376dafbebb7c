"""What do the hot functions cost? Runs every ``bench_*.py`` beside this file and prints one table.

A bench file has ``main()``, which returns rows ``(name, microseconds)`` or ``(name, microseconds, limit)``, or prints lines
``name  1.23 µs``; ``timing.timed`` measures one.

    python -m benchmarks.micro            python benchmarks/micro [part of a name]
    python -m benchmarks.micro request --stages      where a request's microseconds go (stages.py)
"""
import contextlib
import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path

LINE = re.compile(r"(.+?)\s{2,}([\d.]+) µs")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]


def rows_of(path: Path) -> list[tuple[str, float, float | None]]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        rows = module.main()
    if rows is None:
        rows = [(found[1].strip(), float(found[2])) for line in printed.getvalue().splitlines() if (found := LINE.match(line))]
    return [(row[0], row[1], row[2] if len(row) > 2 else None) for row in rows]


def main() -> int:
    if "--stages" in sys.argv:
        return subprocess.run([sys.executable, HERE / "stages.py"], check=False).returncode
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    over = 0
    print("| what | µs | limit | |\n|---|---:|---:|---|")
    for path in sorted(HERE.glob("bench_*.py")):
        if wanted in path.stem:
            for name, us, limit in rows_of(path):
                late = limit is not None and us > limit
                over += late
                print(f"| {name} | {us:.3f} | {'' if limit is None else f'{limit:g}'} | {'over' if late else ''} |", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
