"""What is answered to bytes that are no HTTP request? Our own words, in the shape of our errors, and nothing of those bytes.

aiohttp's own handler writes a traceback with the offending line into the log and the line into the answer: an Authorization
header among them.
"""
import logging
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.core.ids import request_id
from gateway.wire.openai_chat.faults import render

log = logging.getLogger("gateway.http")

_WORDS: Final = {
    400: ("bad_request", "This is not a well-formed HTTP request."),
    413: ("body_too_large", "The request line or a header is too large."),
    431: ("bad_request", "The request's headers are too large."),
}


class HttpProtocol(RequestHandler):
    """One connection."""

    def handle_error(self, request: BaseRequest, status: int = 500, exc: BaseException | None = None,
                     message: str | None = None) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc                                # the client is gone: the caller knows that this is no failure
        if status >= 500:
            log.error("a request failed outside its handler", exc_info=exc)
        else:
            log.info("refused: %d %s", status, HTTPStatus(status).phrase)
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer has left")
        kind, text = _WORDS.get(status, ("internal", "The gateway failed on this request.") if status >= 500 else _WORDS[400])
        name = request_id()
        answer = web.Response(status=status, body=render(GatewayError(kind, text, status=status)), headers={
            "Content-Type": "application/json", "Server": "gateway", "X-Request-ID": name, "request-id": name})
        answer.force_close()
        return answer


class HttpServer(web.Server):
    """``web.Server`` with our protocol."""

    def __call__(self) -> RequestHandler:
        return HttpProtocol(self, loop=self._loop, **self._kwargs)
