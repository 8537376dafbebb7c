"""How is a distribution drawn in text? One line a step, with a bar, its share and where the percentiles lie."""
from collections.abc import Sequence
from typing import Final

ROWS: Final = 12
WIDTH: Final = 40
_PARTS: Final = " ▏▎▍▌▋▊▉█"
MARKED: Final = (0.5, 0.9, 0.99)


def merged(steps: Sequence[tuple[float, int]], rows: int = ROWS) -> list[tuple[float, int]]:
    """At most so many steps: neighbours go together, and what lies far out, less than one in a thousand, is one step."""
    total, seen, head = sum(n for _, n in steps), 0, list(steps)
    for at, (_, n) in enumerate(steps):
        seen += n
        if seen >= total * 0.999 and at + 1 < len(steps):
            head = [*steps[:at + 1], (steps[-1][0], total - seen)]
            break
    size = max(1, -(-len(head) // rows))
    groups = [head[at:at + size] for at in range(0, len(head), size)]
    return [(group[-1][0], sum(n for _, n in group)) for group in groups]


def bar(share: float, width: int = WIDTH) -> str:
    """To an eighth of a column; what is not nothing is seen."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()


def drawn(steps: Sequence[tuple[float, int]]) -> list[str]:
    """Lines of a histogram of milliseconds."""
    rows = merged(steps)
    total, most = sum(n for _, n in rows), max((n for _, n in rows), default=0)
    if not total:
        return []
    lines, seen = [], 0
    for upto, n in rows:
        marks = [f"p{part * 100:g}" for part in MARKED if seen < part * total <= seen + n]
        seen += n
        lines.append(f"{number(upto):>8} ms  {bar(n / most):<{WIDTH}}  {n / total:>6.1%}  {' '.join(marks)}".rstrip())
    return lines


def number(ms: float) -> str:
    return f"≤ {ms:,.0f}" if ms >= 100 else f"≤ {ms:.1f}" if ms >= 10 else f"≤ {ms:.2f}"
