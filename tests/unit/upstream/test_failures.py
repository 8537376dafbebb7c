"""What aiohttp's exceptions mean: who is to blame, in words without addresses."""
import errno
import os
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from gateway.routing.outcomes import OUTCOMES
from gateway.upstream.failures import told

KEY: Any = ConnectionKey("up.example", 443, True, True, None, None, None)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL])
@pytest.mark.parametrize("wrapped", [False, True])
def test_what_this_machine_has_run_out_of_is_no_fault_of_the_provider(number: int, wrapped: bool, caplog) -> None:
    cause = OSError(number, os.strerror(number))
    error = told(aiohttp.ClientConnectorError(KEY, cause) if wrapped else cause, connecting=True)
    assert (error.kind, error.status, error.retry_after_s) == ("shed", 503, 1.0)
    assert not OUTCOMES[error.kind].moves_on and OUTCOMES[error.kind].rule == "none"
    assert len(caplog.records) == 1 and "run out of" in caplog.text


def test_a_name_that_stayed_unresolved_for_want_of_a_file_is_no_fault_either(monkeypatch) -> None:
    unresolved = aiohttp.ClientConnectorDNSError(KEY, OSError(None, "Name or service not known"))
    assert told(unresolved, connecting=True).kind == "transport"

    def none_left(*_: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")
    monkeypatch.setattr("gateway.upstream.failures.os.open", none_left)
    assert told(unresolved, connecting=True).kind == "shed"


@pytest.mark.parametrize(("number", "words"), [(errno.ECONNREFUSED, "connection refused"), (errno.ETIMEDOUT, "connection timed out"),
                                               (errno.EHOSTUNREACH, "host unreachable"), (4711, "connection failed")])
def test_what_happens_at_the_other_end_is_told_in_words(number: int, words: str) -> None:
    error = told(aiohttp.ClientConnectorError(KEY, OSError(number, "at 10.0.0.1")), connecting=True)
    assert (error.kind, error.message) == ("transport", words)


@pytest.mark.parametrize("exc", [
    LineTooLong("aaaa", 32_768), BadHttpMessage("Got more than 32768 bytes when reading: b'aaa...'."), BadHttpMessage("Too many headers received")])
def test_headers_that_are_too_large_are_called_so(exc: Exception) -> None:
    assert told(exc).message == "the answer's headers are too large"
    assert told(BadHttpMessage("Bad status line")).message == "the answer is not HTTP"
