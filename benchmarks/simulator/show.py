"""How is a comparison shown? A table for each day, and one picture of all: the better, the greener."""
import io
from collections.abc import Callable, Mapping, Sequence

from benchmarks.simulator.days import Scenario
from benchmarks.simulator.replay import Result

# name -> (value, format, is more better?)
METRICS: dict[str, tuple[Callable[[Result], float], str, bool]] = {
    "success": (lambda result: result.success, "{:.2%}", True),
    "p95 s": (lambda result: result.p95_s, "{:.2f}", False),
    "$/1000": (lambda result: result.cost_per_1000, "{:.2f}", False),
    "attempts": (lambda result: result.attempts_per_answer, "{:.3f}", False),
}


def table(scenario: Scenario, results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    made = Table(title=f"{scenario.name}: {scenario.about}", title_justify="left", min_width=60)
    made.add_column("strategy")
    for name in ("answered", "p95 to first token, s", "$ for 1000 answers", "attempts an answer"):
        made.add_column(name, justify="right")
    made.add_column("who answered")
    best = {name: (max if more else min)(value(result) for result in results) for name, (value, _, more) in METRICS.items()}
    for result in results:
        cells = []
        for name, (value, form, _) in METRICS.items():
            told = form.format(value(result))
            cells.append(f"[bold green]{told}[/]" if told == form.format(best[name]) else told)
        ranked = sorted(result.by.items(), key=lambda row: -row[1])
        share = ", ".join(f"{id} {100 * n / max(len(result.first_s), 1):.0f} %" for id, n in ranked)
        made.add_row(result.strategy, *cells, share)
    Console(width=150).print(made)


def picture(days: Mapping[Scenario, Sequence[Result]], path: str) -> None:
    """Strategies down, days and what counts across. Colours are ranks within a column: how far from the best of that day."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [result.strategy for result in next(iter(days.values()))]
    columns = [(scenario, name) for scenario in days for name in METRICS]
    figure, axes = pyplot.subplots(figsize=(0.62 * len(columns) + 2.4, 0.3 * len(names) + 1.5))
    shades: list[list[float]] = [[] for _ in names]
    for at, (scenario, name) in enumerate(columns):
        value, form, more = METRICS[name]
        values = [value(result) for result in days[scenario]]
        best, worst = (max(values), min(values)) if more else (min(values), max(values))
        for row, each in enumerate(values):
            shades[row].append(abs(each - best) / abs(worst - best) if form.format(worst) != form.format(best) else 0.0)
            won = form.format(each) == form.format(best) != form.format(worst)
            told = form.format(each).replace("100.00%", "100%")
            axes.text(at, row, told, ha="center", va="center", fontsize=6.5, fontweight="bold" if won else "normal")
    axes.imshow(shades, cmap="RdYlGn_r", vmin=-0.25, vmax=1.25, aspect="auto")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xticks(range(len(columns)), [name for _, name in columns], fontsize=7, rotation=45, ha="right")
    axes.set_ylim(len(names) - 0.5, -0.5)
    for at, scenario in enumerate(days):
        middle = at * len(METRICS) + (len(METRICS) - 1) / 2
        axes.text(middle, -0.75, scenario.name, ha="center", va="bottom", fontsize=10, fontweight="bold")
        if at:
            axes.axvline(at * len(METRICS) - 0.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    figure.tight_layout()
    with io.BytesIO() as drawn:
        figure.savefig(drawn, format="png", dpi=72)
        pyplot.close(figure)
        with Image.open(drawn) as picture:                # a palette: a third of the size
            picture.convert("RGB").quantize(64).save(path, optimize=True)
