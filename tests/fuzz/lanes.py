"""Does the fast lane tell the same story as the full one, of streams that nobody thought of? (tests/property/test_lanes.py)"""
import re
from collections.abc import Callable

from gateway.core.errors import GatewayError
from tests.fuzz.engine import dice_of
from tests.property.test_lanes import cuts, told

# Ids (core.ids.token: 24 letters and digits, an item's number after them) and times of ours, where the upstream has none.
MADE = re.compile(r'(?<=")(?:chatcmpl-|[a-z]{2,20}_)[0-9A-Za-z]{24}[0-9a-f]{0,4}(?=")|(?<="created":)\d+|(?<="created_at":)\d+')
MODELS = {"openai-chat": "m", "anthropic": "m-up", "openai-responses": "m"}


def lanes(wire: str) -> Callable[[bytes], str]:
    def story(reads: list[bytes], fast: bool, live: bool) -> tuple[str, ...]:
        try:
            out, turn, _, n_unread = told(wire, reads, fast, MODELS[wire], reasoning="live" if live else "hold")
        except GatewayError as error:
            return error.kind, error.message, "0"
        return MADE.sub("id", out.decode()), f"{turn.finish} {turn.committed} {turn.touched} {turn.fault!r}", str(n_unread)

    def run(data: bytes) -> str:
        dice = dice_of(data)
        reads, live = cuts(data, dice.random()) or [data], dice.random() < 0.5
        quick, slow = story(reads, True, live), story(reads, False, live)
        assert quick[:2] == slow[:2], (quick, slow)
        return f"{quick[1][:60]} {min(int(quick[2]), 3)}"
    return run
