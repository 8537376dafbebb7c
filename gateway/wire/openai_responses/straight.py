"""Which frames around text need nothing? They are read as what they say, typed, and passed on as they came.

A stream of text has eight of them, and as dicts (``reading.py``) they would cost more than all its text. Every question is asked
before anything is noted: whatever is odd, lacks a member or tells of a call is left to the dicts, so both lanes say the same.
"""
from collections.abc import Callable
from typing import Final

from gateway.wire.openai_responses.frames import Known, Ledger
from gateway.wire.openai_responses.parts import FORMS
from gateway.wire.openai_responses.schema import CALLS, COUNTS
from gateway.wire.openai_responses.told import Part, Told

OPENINGS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
# A part's kind, or the event that tells its whole text -> the delta that says the same, and which number is the part's place.
_DELTA_OF: Final = {kind: form[3] for kind, form in FORMS.items()}
_WHOLE: Final = {form[4]: (form[3], form[1]) for form in FORMS.values()}
_PLACE: Final = {form[i]: form[1] for form in FORMS.values() for i in (2, 5)}


def _known(told: Told, ledger: Ledger, place: str) -> Known | None:
    """The item of a frame that names it by all that it should."""
    known = ledger.items.get(told.output_index)
    if known is None or known.id != told.item_id or known.kind in CALLS or getattr(told, place) < 0:
        return None
    return known


def _added(told: Told, ledger: Ledger) -> bool:
    item, index = told.item, told.output_index
    if item is None or not item.id or item.type in CALLS or index < 0 or index in ledger.items:
        return False
    ledger.begin(index, item.id, item.type)
    return True


def _part_added(told: Told, ledger: Ledger) -> bool:
    place = _PLACE[told.type]
    known, part = _known(told, ledger, place), told.part
    if known is None or part is None or part.type not in _DELTA_OF or FORMS[part.type][1] != place:
        return False
    known.said.setdefault((_DELTA_OF[part.type], getattr(told, place)), 0)
    return True


def _text_done(told: Told, ledger: Ledger) -> bool:
    delta, place = _WHOLE[told.type]
    known = _known(told, ledger, place)
    return known is not None and (not told.said or bool(known.said.get((delta, getattr(told, place)))))


def _part_done(told: Told, ledger: Ledger) -> bool:
    return told.part is not None and _known(told, ledger, _PLACE[told.type]) is not None


def _item_done(told: Told, ledger: Ledger) -> bool:
    known, item = ledger.items.get(told.output_index), told.item
    if known is None or known.over or item is None or item.id != known.id or item.type != known.kind:
        return False
    if known.kind in CALLS or known.kind in COUNTS or not (_said(known, item.summary) and _said(known, item.content)):
        return False
    known.over = True
    return True


def _said(known: Known, parts: list[Part] | None) -> bool:
    """Have deltas said all of these?"""
    for place, part in enumerate(parts or ()):
        delta = _DELTA_OF.get(part.type)
        if delta is not None and part.said and not known.said.get((delta, place)):
            return False
    return True


# Is a frame of this kind such a one? Then the ledger knows of it.
FITS: Final[dict[str, Callable[[Told, Ledger], bool]]] = {
    "response.output_item.added": _added, "response.output_item.done": _item_done,
    **{form[2]: _part_added for form in FORMS.values()}, **{form[5]: _part_done for form in FORMS.values()},
    **dict.fromkeys(_WHOLE, _text_done),
}
