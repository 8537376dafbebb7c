"""How are pictures made smaller that are larger than anybody needs? Decoded, scaled and written again by Pillow, in a thread.

Looks for pictures wherever a body of any format holds them: as data URLs, as ``{media_type, data}`` and ``{mimeType, data}``.
What cannot be read, moves (GIF) or would not get smaller stays as it is. ``images`` is the extra that this needs.
"""
import base64
import binascii
import importlib.util
import io
from typing import Any, Final

from gateway.wire import files
from gateway.wire.lenient import dump, load

EXTRA: Final = "pip install 'gateway[images]'"
MAX_PIXELS: Final = 100_000_000                      # larger ones are bombs, not photographs
_LEAST: Final = 4_096                                # base64 signs: smaller pictures are never too large
_DEPTH: Final = 64
_FORMATS: Final = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}


def available() -> bool:
    return importlib.util.find_spec("PIL") is not None


def shrunk(raw: bytes, max_side: int) -> bytes | None:
    """The body with its pictures at most ``max_side`` pixels wide and high; None where nothing had to change."""
    try:
        body, _ = load(raw)
    except ValueError:
        return None
    walk = _Walk(max_side)
    made = walk.value(body, 0)
    return dump(made) if walk.changed else None


class _Walk:
    def __init__(self, max_side: int) -> None:
        self._side = max_side
        self.changed = 0

    def value(self, value: Any, depth: int) -> Any:
        if depth > _DEPTH:
            return value
        if isinstance(value, list):
            return [self.value(one, depth + 1) for one in value]
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, str) and value.startswith("data:image/"):
            head, _, data = value.partition(",")
            small = self._picture(data) if head.endswith(";base64") else None
            return f"data:{small[0]};base64,{small[1]}" if small is not None else value
        return value

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """``{"media_type": …, "data": …}`` and its spellings; else whatever is inside."""
        name = next((name for name in ("media_type", "mimeType", "mime_type") if name in value), None)
        data = value.get("data")
        if name is not None and isinstance(data, str) and str(value[name]).startswith("image/"):
            small = self._picture(data)
            return value if small is None else {**value, name: small[0], "data": small[1]}
        if isinstance(value.get("images"), list):            # Ollama: base64 without a type
            value = {**value, "images": [self._bare(one) for one in value["images"]]}
        return {key: self.value(one, depth + 1) for key, one in value.items()}

    def _bare(self, one: Any) -> Any:
        small = self._picture(one) if isinstance(one, str) and not one.startswith("data:") else None
        return one if small is None else small[1]

    def _picture(self, data: str) -> tuple[str, str] | None:
        if len(data) < _LEAST:
            return None
        kind = files.image_type(data, "")
        if kind not in _FORMATS:
            return None
        try:
            made = smaller(base64.b64decode(data), kind, self._side)
        except (binascii.Error, ValueError):
            return None
        if made is None:
            return None
        self.changed += 1
        return kind, base64.b64encode(made).decode()


def smaller(data: bytes, kind: str, max_side: int) -> bytes | None:
    """The picture in its own format, scaled; None where it is small enough, or cannot be read."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            if max(picture.size) <= max_side or picture.width * picture.height > MAX_PIXELS or getattr(picture, "n_frames", 1) > 1:
                return None
            upright = ImageOps.exif_transpose(picture)
            upright.thumbnail((max_side, max_side), Image.Resampling.LANCZOS)
            out = io.BytesIO()
            upright.save(out, _FORMATS[kind], **({"quality": 85} if kind != "image/png" else {"optimize": True}))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError, SyntaxError):
        return None
    return out.getvalue() if out.tell() < len(data) else None
