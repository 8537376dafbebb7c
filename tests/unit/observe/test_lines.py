"""A log that nobody reads holds up nobody."""
import logging
import os
import time

from gateway.core.call import Call
from gateway.observe.access import AccessLog
from gateway.observe.lines import LineHandler, LineWriter
from gateway.observe.recent import Recent


def read_all(fd):
    os.set_blocking(fd, False)
    data = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except BlockingIOError:
            return data.decode()
        if not piece:
            return data.decode()
        data += piece


def test_lines_come_out_in_order():
    out, fd = os.pipe()
    writer = LineWriter(fd)
    for i in range(2_000):
        writer.put(f"{i}\n")
    writer.close()
    assert read_all(out).split() == [str(i) for i in range(2_000)]


def test_a_full_pipe_blocks_neither_put_nor_close_and_losses_are_counted():
    out, fd = os.pipe()
    writer = LineWriter(fd, max_lines=100)
    began = time.monotonic()
    for _ in range(3_000):                        # until the thread is stuck in a full pipe and the queue is full as well
        writer.put("x" * 5_000 + "\n")
        time.sleep(0.001)
        if writer.dropped > 100:
            break
    writer.close()
    assert time.monotonic() - began < 10          # a blocked writer would never come here
    assert writer.dropped > 0
    os.close(out)


def test_a_closed_pipe_is_nobodys_failure():
    out, fd = os.pipe()
    os.close(out)
    writer = LineWriter(fd)
    writer.put("gone\n")
    writer.close()


def test_logging_goes_the_same_way():
    out, fd = os.pipe()
    writer = LineWriter(fd)
    log = logging.Logger("here")
    log.addHandler(LineHandler(writer))
    log.error("it is %s", "told")
    writer.close()
    assert read_all(out).endswith("ERROR here: it is told\n")


def test_quiet_levels_tell_failures_only():
    out, fd = os.pipe()
    writer = LineWriter(fd)
    journal = AccessLog("json", "error", writer)
    for outcome in ("ok", "failed"):
        journal.add(Call(id=outcome, surface="chat", wire="openai-chat", operation="chat", started=1.0, wall=0.0, outcome=outcome))
    writer.close()
    lines = read_all(out).splitlines()
    assert len(lines) == 1 and '"outcome":"failed"' in lines[0] and '"time":"1970-01-01T00:00:00Z"' in lines[0]


def test_a_clients_words_cannot_forge_a_line():
    out, fd = os.pipe()
    writer = LineWriter(fd)
    call = Call(id="r", surface="chat", wire="openai-chat", operation="chat", started=1.0, wall=0.0, outcome="ok")
    call.routed = "a/m status=200\nforged"
    AccessLog(writer=writer).add(call)
    writer.close()
    assert read_all(out).count("\n") == 1


def test_no_message_looks_like_two_nor_does_what_an_exception_says():
    out, fd = os.pipe()
    writer = LineWriter(fd)
    handlers = [LineHandler(writer), recent := Recent()]
    log = logging.getLogger("tests.forged")
    log.propagate = False
    for handler in handlers:
        log.addHandler(handler)
    forged = "x\r\n2026-01-01 ERROR gateway: all is lost\u2028\x1b[2J\x85"
    try:
        log.warning("a/m serves another model: %s", forged)
        try:
            raise ValueError(forged)
        except ValueError:
            log.exception("failed")
    finally:
        log.handlers.clear()
    writer.close()
    first, second, *rest = read_all(out).split("\n")
    assert first.endswith(r"WARNING tests.forged: a/m serves another model: x\r\n2026-01-01 ERROR gateway: all is lost\u2028\x1b[2J\x85")
    assert second.endswith("ERROR tests.forged: failed") and rest.pop() == ""
    assert any("ValueError" in line for line in rest) and all(line.startswith("    ") and line.isprintable() for line in rest)
    assert [line for _, line in recent.after(0, 9)] == [first, "\n".join([second, *rest])]


def test_lines_between_two_writes_leave_together_and_at_once_when_it_closes():
    reader, fd = os.pipe()
    writer = LineWriter(fd)
    writer.put("first\n")
    assert os.read(reader, 100) == b"first\n"    # nobody waits for a line that comes alone
    for name in ("second\n", "third\n"):
        writer.put(name)
    writer.close()
    assert os.read(reader, 100) == b"second\nthird\n"
    os.close(reader)
    os.close(fd)
