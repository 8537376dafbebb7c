"""How many tokens did the turn take, when the upstream says it late, often, wrongly or never?

The last word of the upstream wins, but never with a zero where it had said a number (formats that report the prompt
at the start and the answer at the end repeat the other half as 0). A turn without counts gets an estimate, marked as
one.
"""
from gateway.core.events import Usage

CHARS_PER_TOKEN = 4
_COUNTS = ("input", "output", "cached", "cache_write", "reasoning", "total")


def merge(said: Usage | None, now: Usage) -> Usage:
    """What holds after the upstream said ``now``; ``now`` itself (raw frame kept) unless it forgot a number."""
    if said is None:
        return now
    forgot = {name: was for name in _COUNTS if (was := getattr(said, name)) and not getattr(now, name)}
    if not forgot or now.input and now.output:
        return now
    fields = {name: getattr(now, name) for name in _COUNTS} | forgot
    fields["total"] = max(fields["total"], fields["input"] + fields["output"])
    return Usage(**fields, estimated=now.estimated)


def tokens(n_chars: int) -> int:
    return -(-n_chars // CHARS_PER_TOKEN)


def estimate(prompt_tokens: int, n_chars: int, n_reasoning_chars: int) -> Usage:
    """``n_chars``: visible text and tool arguments; the thinking is counted as output too, as every provider does."""
    reasoning = tokens(n_reasoning_chars)
    output = tokens(n_chars) + reasoning
    return Usage(input=prompt_tokens, output=output, reasoning=reasoning, total=prompt_tokens + output, estimated=True)


def spent(said: Usage | None, prompt_tokens: int, n_chars: int, n_reasoning_chars: int) -> Usage:
    """What a turn took that was cut off: what was told of it so far, but no less than was seen."""
    seen = estimate(prompt_tokens, n_chars, n_reasoning_chars)
    if said is None or not said.input:
        return seen
    if said.output >= seen.output:
        return said
    return Usage(input=said.input, output=seen.output, cached=said.cached, cache_write=said.cache_write,
                 reasoning=max(said.reasoning, seen.reasoning), total=said.input + seen.output, estimated=True)


def settle(said: Usage | None, prompt_tokens: int, n_chars: int, n_reasoning_chars: int) -> Usage:
    """The one usage of a finished turn. All zeros is what servers write that do not count: that is no word at all."""
    if said is not None and (said.input or said.output or said.total or not n_chars + n_reasoning_chars):
        return said
    return estimate(prompt_tokens, n_chars, n_reasoning_chars)
