"""What has compression done since the start? Sums only: by mode and by engine, so its size is fixed."""
import msgspec

from gateway.compress.plan import ENGINES, MODES, Outcome


class EngineSum(msgspec.Struct):
    runs: int = 0
    edits: int = 0
    saved_chars: int = 0
    discarded: dict[str, int] = {}               # by the gate's reasons, of which there are a handful
    ms: float = 0.0


class Tally(msgspec.Struct):
    """``requests``: those that compression looked at; ``compressed``: those that became smaller."""
    requests: int = 0
    compressed: int = 0
    chars_before: int = 0
    chars_after: int = 0
    saved_tokens: int = 0
    ms: float = 0.0
    by_mode: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(MODES, 0))
    engines: dict[str, EngineSum] = msgspec.field(default_factory=lambda: {engine.name: EngineSum() for engine in ENGINES})

    def add(self, outcome: Outcome) -> None:
        self.requests += 1
        self.by_mode[outcome.mode] += 1
        self.compressed += bool(outcome.changed)
        self.chars_before += outcome.chars_before
        self.chars_after += outcome.chars_after
        self.saved_tokens += outcome.saved_tokens
        self.ms += outcome.ms
        for stage in outcome.stages:
            total = self.engines[stage.engine]
            total.runs += 1
            total.edits += stage.edits
            total.saved_chars += stage.saved_chars
            total.ms += stage.ms
            for reason, times in stage.discarded.items():
                total.discarded[reason] = total.discarded.get(reason, 0) + times
