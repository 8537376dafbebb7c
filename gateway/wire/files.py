"""What is a picture or a file that a request carries? Its bytes in base64, and its type by its first bytes.

APIs that take bytes refuse a type that does not fit them; clients declare jpg, or png for everything.
"""
from typing import Final

# The first bytes of a picture in base64, and what it therefore is. RIFF is WebP where "WEBP" stands at byte 8.
_MAGIC: Final = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))


def inline(data: str, media_type: str, url: str) -> tuple[str, str]:
    """(base64, declared type) of what is there as bytes, also inside of a data URL; ("", type) for any other address."""
    if data:
        return data, plain_type(media_type)
    if not url.startswith("data:"):
        return "", plain_type(media_type)
    head, _, body = url[5:].partition(",")
    kind = plain_type(head.partition(";")[0]) or plain_type(media_type)
    return (body, kind) if head.endswith("base64") else ("", kind)


def image_type(data: str, declared: str) -> str:
    """What a picture is, by its bytes; else by its declaration, spelled as everybody wants it."""
    for head, kind in _MAGIC:
        if data.startswith(head):
            return kind
    return "image/jpeg" if declared in ("image/jpg", "image/pjpeg") else declared or "image/png"


def plain_type(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
