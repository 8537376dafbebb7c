"""What does a multipart form say, and how is one field of it changed without touching the rest?

https://www.rfc-editor.org/rfc/rfc7578 · a form that is in memory already; its parts are pieces of the bytes that came.
"""
import re
from typing import Final

import msgspec

from gateway.core.errors import bad_request

MAX_PARTS: Final = 64
_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"\r\n]{1,70})"|([^\s;,"]{1,70}))', re.I)
_NAME: Final = re.compile(rb'[;\s]name="((?:[^"\\\r\n]|\\.)*)"', re.I)
_FILE: Final = re.compile(rb'[;\s]filename\*?=', re.I)


class Part(msgspec.Struct):
    """One field. ``start`` and ``end`` bound its content within the form's bytes."""
    name: str
    start: int
    end: int
    file: bool = False


class Form(msgspec.Struct):
    raw: bytes
    boundary: bytes
    parts: list[Part]

    def text(self, name: str) -> str | None:
        """The value of a field; the last one counts."""
        part = next((part for part in reversed(self.parts) if part.name == name and not part.file), None)
        return None if part is None else self.raw[part.start:part.end].decode("utf-8", "replace").strip()

    def size(self, name: str) -> int | None:
        part = next((part for part in self.parts if part.name == name), None)
        return None if part is None else part.end - part.start

    def replaced(self, name: str, value: str) -> bytes:
        """The same form with this field's value; it is added where there is none."""
        data = value.encode()
        pieces: list[bytes] = []
        at, found = 0, False
        for part in self.parts:
            if part.name == name and not part.file:
                pieces += (self.raw[at:part.start], data)
                at, found = part.end, True
        rest = self.raw[at:]
        if found:
            return b"".join((*pieces, rest))
        head = b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (self.boundary, name.encode(), data)
        begin = self.raw.index(b"--" + self.boundary)
        return head + self.raw[begin:]


def read(raw: bytes, content_type: str) -> Form:
    """Raises bad_request for what is no form."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise bad_request("The content type multipart/form-data needs a boundary.", "content-type")
    boundary = (found[1] or found[2]).encode()
    mark = b"--" + boundary
    form = Form(raw, boundary, [])
    if not raw.startswith(mark) and b"\r\n" + mark not in raw:
        raise bad_request("The body is no multipart form with the boundary of its content type.")
    at = raw.index(mark)
    while not raw.startswith(b"--", at + len(mark)):
        begin = raw.find(b"\r\n", at + len(mark))
        blank = raw.find(b"\r\n\r\n", begin)
        end = raw.find(b"\r\n" + mark, blank + 2 if blank >= 0 else begin)
        if begin < 0 or blank < 0 or end < 0:
            raise bad_request("The form in the body is cut off.")
        if len(form.parts) >= MAX_PARTS:
            raise bad_request(f"The form has more than {MAX_PARTS} fields.")
        head = raw[begin:blank]
        name = _NAME.search(head)
        if name is None:
            raise bad_request("A field of the form has no name.")
        form.parts.append(Part(name[1].decode("utf-8", "replace"), blank + 4, max(end, blank + 4), _FILE.search(head) is not None))
        at = end + 2
    return form
