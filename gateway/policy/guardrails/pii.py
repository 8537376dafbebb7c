"""What in a text is personal data? Addresses, telephone and card numbers, account numbers, by their form and their check digits.

Card numbers: Luhn's sum, ISO/IEC 7812-1. IBANs: lengths of the registry and the remainder of ISO 13616. US social security numbers:
https://www.ssa.gov/employer/randomization.html (what is never issued). Addresses of this very machine are nobody's.

Each expression begins with a sign or a set of few, and looks behind that for what must not stand before: only so is a long text gone
through quickly.
"""
import ipaddress
import re
from typing import Final

from gateway.policy.guardrails.find import Kind, Span, matching

_LETTER: Final = "A-Za-z0-9\u00c0-\u024f"
_LOCAL: Final = re.compile(rf"[{_LETTER}._%+\-]{{1,64}}\Z")
_DOMAIN: Final = re.compile(rf"(?:[{_LETTER}][{_LETTER}\-]{{0,62}}\.){{1,8}}[A-Za-z\u00c0-\u024f]{{2,24}}")
_EMAIL_TAIL: Final = rf"[{_LETTER}._%+\-]{{1,64}}(?:@[{_LETTER}.\-]{{0,540}})?\Z|@[{_LETTER}.\-]{{0,540}}\Z"
_NUMBER_TAIL: Final = r"[+(\d][\d ().\-/]{0,63}\Z"
_DIGIT: Final = re.compile(r"\d")
_DATE: Final = re.compile(r"\d{1,2}[ /\-]\d{1,2}[ /\-]\d{4}")


def email(text: str, pos: int) -> Span | None:
    at = text.find("@", pos)
    while at >= 0:
        domain = _DOMAIN.match(text, at + 1)
        local = _LOCAL.search(text, max(pos, at - 64), at) if domain is not None else None
        if domain is not None and local is not None and local[0] != "git":
            return local.start(), domain.end()
        at = text.find("@", at + 1)
    return None


# ---------------------------------------------------------------- numbers
def luhn(digits: str) -> bool:
    total = 0
    for n, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + n % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_CARD: Final = re.compile(r"[2-6](?<!\d.)(?:[ \-]?\d){12,18}")


def card(text: str, pos: int) -> Span | None:
    """The longest number that is a card's; what follows it may be another number."""
    while (found := _CARD.search(text, pos)) is not None:
        ends = [digit.end() for digit in _DIGIT.finditer(text, found.start(), found.end())]
        for n in range(len(ends), 12, -1):
            end = ends[n - 1]
            if not text[end:end + 1].isdigit() and luhn(re.sub(r"\D", "", text[found.start():end])):
                return found.start(), end
        pos = found.start() + 1
    return None


def _domestic(text: str) -> int:
    """A number with a zero in front, as it is dialled in most of Europe; dates look alike."""
    n = sum(map(str.isdigit, text))
    return len(text) if 9 <= n <= (15 if text.startswith("00") else 12) and not _DATE.match(text) else 0


_PHONES: Final = (
    matching(r"\+(?<![\w+]\+)\d(?:[ ().\-/]{0,2}\d){7,14}(?!\d)"),
    matching(r"[\d(](?<![\w+.\-].)(?:(?<=\d)\d\d[ .\-]|(?<=\()\d{3}\) ?|(?<=1)[ .\-](?:\(\d{3}\) ?|\d{3}[ .\-]))"
             r"\d{3}[ .\-]\d{4}(?!\w)"),
    matching(r"0(?<![\w+.\-/]0)(?:[1-9]\d{0,3}|0[1-9]\d{0,2})(?:[ /\-]\d{2,8}){1,4}(?!\w)", _domestic),
)


def phone(text: str, pos: int) -> Span | None:
    return min((span for find in _PHONES if (span := find(text, pos)) is not None), default=None)


# ---------------------------------------------------------------- IBAN
_LENGTHS: Final = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18,
    "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23,
    "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28,
    "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}
_SIGN: Final = re.compile(r"[A-Za-z0-9]")
_IBAN: Final = re.compile(r"\d(?<=[A-Za-z]{2}\d)(?<![A-Za-z0-9][A-Za-z]{2}\d)\d(?:[ \-]?[A-Za-z0-9]){11,30}")


def iban(text: str, pos: int) -> Span | None:
    while (found := _IBAN.search(text, pos + 2)) is not None:
        start = found.start() - 2
        n = _LENGTHS.get(text[start:start + 2].upper(), 0)
        ends = [sign.end() for sign in _SIGN.finditer(text, start, found.end())]
        if n and len(ends) >= n and not _SIGN.match(text, ends[n - 1]):
            plain = re.sub(r"[ \-]", "", text[start:ends[n - 1]]).upper()
            if int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1:
                return start, ends[n - 1]
        pos = start + 1
    return None


# ---------------------------------------------------------------- addresses of machines
def _address(text: str) -> int:
    for n in (len(text), len(text) - 1):             # a colon behind it may be the sentence's
        try:
            found = ipaddress.ip_address(text[:n])
        except ValueError:
            if text[n - 1:n] != ":":
                return 0
            continue
        if not any(map(str.isdigit, text)):
            return 0                                 # as in a::b, which is a name in many languages
        return 0 if found.is_loopback or found.is_unspecified or found.is_link_local or text.startswith("255.") else n
    return 0


_four: Final = matching(r"\d(?<![\w.].)\d{0,2}(?:\.\d{1,3}){3}(?!\w|\.\d)", _address)
_SIX: Final = re.compile(r"[0-9A-Fa-f:]{3,39}(?![\w:])")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def _six(text: str, pos: int) -> Span | None:
    at = text.find(":", pos)
    while at >= 0:
        start = at
        while start > pos and at - start < 4 and text[start - 1] in _HEX:
            start -= 1
        before = text[start - 1] if start else " "
        if not (before.isalnum() or before in "_:."):
            found = _SIX.match(text, start)
            if found is not None and (n := _address(found[0])):
                return start, start + n
        at = text.find(":", at + 1)
    return None


def ip(text: str, pos: int) -> Span | None:
    return min((span for find in (_four, _six) if (span := find(text, pos)) is not None), default=None)


KINDS: Final[dict[str, Kind]] = {
    "email": Kind("EMAIL", "e-mail addresses", email, _EMAIL_TAIL),
    "iban": Kind("IBAN", "account numbers", iban,
                 r"(?<![A-Za-z0-9])(?:[A-Za-z]{1,2}|[A-Za-z]{2}\d{1,2}(?:[ \-]?[A-Za-z0-9]){0,32}[ \-]?)\Z"),
    "credit_card": Kind("CREDIT_CARD", "card numbers", card, _NUMBER_TAIL),
    "ssn": Kind("SSN", "social security numbers", matching(
        r"[0-8](?<![\w\-].)\d\d(?<!000)(?<!666)([ \-])(?!00)\d\d\1(?!0000)\d{4}(?![\w\-])"), _NUMBER_TAIL),
    "ip": Kind("IP", "addresses of machines", ip, rf"{_NUMBER_TAIL}|[0-9A-Fa-f:.]{{1,48}}\Z"),
    "phone": Kind("PHONE", "telephone numbers", phone, _NUMBER_TAIL),
}
