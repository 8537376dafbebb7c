"""Large pictures are scaled down wherever a body holds them; everything else stays as it came."""
import base64
import io
import json

import pytest

from gateway.config.load import ConfigError, loads
from gateway.upstream import images
from gateway.upstream.images import shrunk

Image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")


def picture(form="PNG", size=(300, 200)):
    made = Image.effect_noise(size, 90).convert("RGB")
    out = io.BytesIO()
    made.save(out, form)
    return base64.b64encode(out.getvalue()).decode()


def size_of(data):
    return Image.open(io.BytesIO(base64.b64decode(data))).size


BIG = {form: picture(form) for form in ("PNG", "JPEG", "WEBP")}


@pytest.mark.parametrize(("wrap", "unwrap"), [
    (lambda d: {"messages": [{"content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{d}"}}]}]},
     lambda b: b["messages"][0]["content"][0]["image_url"]["url"].partition(",")[2]),
    (lambda d: {"messages": [{"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": d}}]}]},
     lambda b: b["messages"][0]["content"][0]["source"]["data"]),
    (lambda d: {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": d}}]}]},
     lambda b: b["contents"][0]["parts"][0]["inlineData"]["data"]),
    (lambda d: {"messages": [{"content": "x", "images": [d]}]}, lambda b: b["messages"][0]["images"][0]),
], ids=["chat", "messages", "gemini", "ollama"])
@pytest.mark.parametrize("form", BIG)
def test_a_large_picture_is_scaled_in_every_format(wrap, unwrap, form):
    made = json.loads(shrunk(json.dumps(wrap(BIG[form])).encode(), 100))
    assert size_of(unwrap(made)) == (100, 67)


def test_small_ones_and_what_cannot_be_read_stay():
    body = {"a": f"data:image/png;base64,{BIG['PNG']}", "b": "data:image/png;base64," + "iVBORw0KGgo" + "A" * 8000, "c": 1}
    assert shrunk(json.dumps(body).encode(), 1000) is None
    assert shrunk(b"{", 10) is None
    assert shrunk(json.dumps({"x": "data:image/svg+xml;base64," + "A" * 9000}).encode(), 10) is None


def test_a_missing_package_is_told_at_the_start(monkeypatch):
    monkeypatch.setattr(images, "available", lambda: False)
    with pytest.raises(ConfigError) as told:
        loads("[images]\nmax_side = 100")
    assert told.value.problems[0][0] == "images.max_side" and "gateway[images]" in told.value.problems[0][1]
