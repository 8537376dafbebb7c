"""What must not be seen in text that a provider wrote: keys, tokens, addresses. Everything that leaves is masked here.

Three uses: ``redact`` for one line of an error message, ``redact_json`` for an error body that goes back in its own words,
``Scrubber`` for the bytes of an answer in which an upstream repeats the key it was given.
"""
import functools
import re
import urllib.parse
from collections.abc import Iterable
from typing import Any, Final

import msgspec

LIMIT: Final = 240                       # characters of a redacted line
EMPTY: Final = "Provider error"
MASK: Final = "[redacted]"
URL_MASK: Final = "[url]"
HOST_MASK: Final = "[host]"
PATH_MASK: Final = "[path]"

_SCAN_LIMIT = 8_192                      # characters that the patterns look at
_JSON_TEXT_LIMIT = 2_000                 # characters of one string in a verbatim body
_JSON_DEPTH = 8
_JSON_NODES = 400
_MIN_OVERLAP = 6                         # characters of a key at the end of escaped text that are no chance

# What people write where a local server wants "some key": hiding these words would damage answers that use them.
_PLACEHOLDERS = frozenset({
    "not-needed", "not_needed", "no-key", "no_key", "nokey", "lm-studio", "llama-cpp", "llama.cpp", "sk-no-key-required",
    "your-api-key", "your_api_key", "sk-xxx", "sk-xxxx", "sk-1234", "placeholder", "api-key", "api_key", "no-key-required",
    "no-api-key", "unused-key", "123456", "12345678",
})

# In this order: a URL may carry a key, so it goes first.
_PATTERNS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\b(?:https?|wss?)://[^\s\"'<>\\)\]}]+", re.I), URL_MASK),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;}]+", re.I), rf"\1 {MASK}"),
    (re.compile(r"\b((?:x[_-])?(?:goog[_-])?(?:api|access|secret|subscription|auth)[_ -]?(?:key|token|secret)(?: provided)?"
                r"|token|secret|password|authorization|key provided)(\"?'?\s*[:=]\s*[\"'`]?)(?!\[redacted)[^\s\"'`,;&}]{4,}",
                re.I), rf"\1\2{MASK}"),
    # Key shapes of the providers: OpenAI and kin, Groq, Google, xAI, Hugging Face, Perplexity, NVIDIA, AWS, GitHub, ours.
    (re.compile(r"\b(?:sk|rk|pk|csk|tgp|fw)[-_][A-Za-z0-9*][A-Za-z0-9_*-]{5,}"), MASK),
    (re.compile(r"\b(?:gsk_|gw[-_]|AIza|ya29\.|hf_|pplx-|nvapi-|gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_*-]{6,}"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bxai-[A-Za-z0-9]{12,}"), MASK),
    (re.compile(r"\beyJ[\w-]{6,}(?:\.[\w-]+){0,2}|(?<![\w-])[\w-]{16,}\.[\w-]{16,}\.[\w-]{16,}"), MASK),
    (re.compile(r"[A-Za-z0-9]{32,}"), MASK),
)
# Where a provider runs, in text of its own: hosts with a port, addresses, files. Not in bodies nor in our log, where they are content.
_PLACES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\b(host(?:name)?=['\"]?)[\w.-]{1,253}(['\"]?,? ?port=['\"]?)\d{1,5}", re.I), rf"\1{HOST_MASK}\2{HOST_MASK}"),
    (re.compile(r"(?<![\w.-])(?:(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}|localhost):\d{2,5}\b", re.I), HOST_MASK),
    (re.compile(r"(?<![\w.-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)(?::\d{1,5}\b)?"),
     HOST_MASK),
    (re.compile(r"(?<!\w)\[(?=[0-9a-f.]{0,16}:[0-9a-f.]{0,16}:)[0-9a-f:.]{2,45}(?:%\w{1,16})?\](?::\d{1,5}\b)?", re.I), HOST_MASK),
    (re.compile(r"\b((?:connect(?:ing)? to|dial (?:tcp|udp)|lookup|upstream|backend) ['\"]?)[\w.-]{1,253}:\d{2,5}\b", re.I),
     rf"\1{HOST_MASK}"),
    (re.compile(r"(?<![\w/.:<~-])~?/(?:home|root|usr|opt|var|etc|srv|tmp|mnt|app|proc|private|Users|Volumes|workspace)/"
                r"[^\s\"'`<>,;()\[\]{}]+"), PATH_MASK),
    (re.compile(r"(?<![\w/.])[a-z]:\\[^\s\"'`<>,;()\[\]{}]+", re.I), PATH_MASK),
)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\u0085\u2028\u2029]+")
_SECRET_NAME = re.compile(r"(?:^|[_-])(?:api[_-]?key|access[_-]?token|token|secret|password|authorization)$", re.I)


def worth_hiding(secret: str) -> bool:
    """Is this a credential, and not a word that a local server accepts as one?"""
    if len(secret) < 6 or secret.lower() in _PLACEHOLDERS:
        return False
    return len(secret) >= 16 or not secret.isalpha()


def redact(text: str, secrets: Iterable[str] = (), limit: int = LIMIT) -> str:
    """One safe, bounded line; ``Provider error`` when nothing is left."""
    line = _BLANK.sub(" ", mask_words(text, secrets)).strip()
    return clip(line, limit) or EMPTY


def without(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, and otherwise as it is."""
    for secret in secrets:
        if secret in text and worth_hiding(secret):
            text = text.replace(secret, MASK)
    return text


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace exact secrets, then everything that looks like one. Length is bounded by what the patterns can look at."""
    text = without(text, secrets)
    if len(text) > _SCAN_LIMIT:
        # The last word may be half a token, which no pattern would know.
        text = text[:_SCAN_LIMIT].rstrip().rpartition(" ")[0] or text[:_SCAN_LIMIT]
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def mask_words(text: str, secrets: Iterable[str] = ()) -> str:
    """What a provider says in an error, as its caller may hear it: nor where it runs."""
    text = mask(text, secrets)
    for pattern, replacement in _PLACES:
        text = pattern.sub(replacement, text)
    return text


# In bodies, which are long: patterns that look at each character a bounded number of times. Addresses stay: they are content.
_IN_BODIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\bbearer\s+[\w.~+/=-]{12,}", re.I), f"Bearer {MASK}"),
    *_PATTERNS[2:6],
    (re.compile(r"\beyJ[\w-]{16,}(?:\.[\w-]+){1,2}"), MASK),
)


def mask_body(data: bytes, secrets: Iterable[str] = ()) -> bytes:
    """The same body without known secrets and without what looks like one; of any length."""
    text = Scrubber(secrets).replace(data).decode("utf-8", "replace")
    for pattern, replacement in _IN_BODIES:
        text = pattern.sub(replacement, text)
    return text.encode()


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit - 1].rstrip() + "…"


def redact_json(value: Any, secrets: Iterable[str] = ()) -> Any:
    """The same JSON with its strings masked; depth, size and string length are bounded, keys and numbers stay."""
    return _Bounded(tuple(secrets)).walk(value, 0)


class _Bounded:
    """One walk over a JSON value with a budget of nodes."""

    __slots__ = ("secrets", "left")

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self.secrets = secrets
        self.left = _JSON_NODES

    def walk(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if isinstance(value, str):
            return clip(mask_words(value, self.secrets), _JSON_TEXT_LIMIT)
        if isinstance(value, dict):
            return self._dict(value, depth) if depth < _JSON_DEPTH else {}
        if isinstance(value, (list, tuple)):
            if depth >= _JSON_DEPTH:
                return []
            return [self.walk(item, depth + 1) for item in value[:_JSON_NODES] if self.left > 0]
        return value

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in value.items():
            if self.left <= 0:
                break
            name = clip(mask(str(key), self.secrets), LIMIT)
            hidden = isinstance(item, str) and item and _SECRET_NAME.search(name)
            out[name] = MASK if hidden else self.walk(item, depth + 1)
        return out


# An escape of a JSON string; the group is one of a sign that needs none.
_ESCAPE: Final = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|.)", re.DOTALL)
_UNASKED: Final = re.compile(rb"\\u00[2-7]").search
_BACKSLASH: Final = 92
_NEEDS_NONE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~+/=:|@")


def spelled_out(data: bytes) -> bytes:
    """JSON that says the same without escapes of letters, digits and what else keys consist of."""
    return _ESCAPE.sub(_sign, data) if _UNASKED(data) is not None else data


def _sign(escape: re.Match[bytes]) -> bytes:
    code = int(escape[1], 16) if escape[1] else 0
    return bytes((code,)) if code in _NEEDS_NONE else escape[0]


class Scrubber:
    """Finds and hides known secrets in a stream of bytes, also where a read cut them.

    ``contains`` and ``replace`` keep no state; ``feed`` and ``flush`` belong to one stream.
    """

    __slots__ = ("_needles", "_ends", "_tail")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._needles, self._ends = _searched(tuple(secrets))
        self._tail = b""

    def contains(self, data: bytes) -> bool:
        for needle in self._needles:             # a loop: any() costs ten times the search
            if data.find(needle) >= 0:           # "in" takes three times as long: CPython tries a number first
                return True
        return False

    def replace(self, data: bytes) -> bytes:
        if data.find(b"\\u00") >= 0:
            data = self._readable(data)
        for needle in self._needles:
            if data.find(needle) >= 0:
                data = data.replace(needle, MASK.encode())
        return data

    def feed(self, data: bytes) -> bytes:
        """What may leave of the bytes so far; an end that may be the start of a secret waits for the next read."""
        if _BACKSLASH in data and data.find(b"\\u00") >= 0:
            data = self._readable(data)
        if not self._tail and data and data[-1] not in self._ends:
            for needle in self._needles:
                if data.find(needle) >= 0:
                    return self.replace(data)
            return data
        data = self.replace(self._tail + data)
        held = max((_overlap(data, needle) for needle in self._needles), default=0)
        if not held:
            self._tail = b""
            return data
        self._tail = data[-held:]
        return data[:-held]

    def _readable(self, data: bytes) -> bytes:
        """Escapes that hide a secret are undone; all other bytes stay as they came."""
        plain = spelled_out(data)
        if plain == data:
            return data
        joined = self._tail + plain
        hides = self.contains(joined) or any(_overlap(joined, needle) >= _MIN_OVERLAP for needle in self._needles)
        return plain if hides else data

    def flush(self) -> bytes:
        rest, self._tail = self._tail, b""
        return rest


@functools.lru_cache(maxsize=4_096)
def _searched(secrets: tuple[str, ...]) -> tuple[tuple[bytes, ...], frozenset[int]]:
    """What to look for, and what a read can end with that cuts a secret (a line feed never is)."""
    needles = tuple({needle for secret in secrets if worth_hiding(secret) for needle in _forms(secret)})
    return needles, frozenset(b"".join(needles))


def _forms(secret: str) -> set[bytes]:
    """The secret as it may stand in an answer: plain, in a JSON string, in a URL."""
    plain = secret.encode()
    return {plain, msgspec.json.encode(secret)[1:-1], plain.replace(b"/", b"\\/"), urllib.parse.quote(secret, safe="").encode()}


def _overlap(data: bytes, needle: bytes) -> int:
    """Length of the longest end of ``data`` that begins ``needle``."""
    end = data[1 - len(needle):]
    at = end.find(needle[:1])
    while at >= 0:
        if needle.startswith(end[at:]):
            return len(end) - at
        at = end.find(needle[:1], at + 1)
    return 0
