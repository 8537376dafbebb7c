"""A configuration file that changed is noticed, however it was written."""
import os

from gateway.server.reload import signature


def test_the_signature_changes_with_the_file(tmp_path):
    file, other = tmp_path / "gateway.toml", tmp_path / "other"
    assert signature(None) is None and signature(file) is None
    file.write_text("a")
    first = signature(file)
    assert first is not None and first == signature(file)
    other.write_text("b")
    os.utime(other, ns=(first[0], first[0]))
    os.replace(other, file)
    assert signature(file) != first, "replaced by one of the same time and size"
