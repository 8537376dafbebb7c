"""Who tells an OpenTelemetry collector of finished requests? A Journal that does nothing until an endpoint is configured.

Spans and numbers are made from the finished call; the SDK (extra ``otel``) is imported when they are first wanted, queues them
within bounds, and sends them on threads of its own.
"""
import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.config.schema import Otel
from gateway.core.call import Call
from gateway.observe.spans import Upstream, upstream
from gateway.routing.catalog import Catalog

if TYPE_CHECKING:
    from gateway.observe.otlp import Exporter

log = logging.getLogger("gateway.otel")

CLOSE_S: Final = 5.0


def warm(settings: Otel) -> None:
    """Import what these settings need, where nobody waits for it."""
    if settings.endpoint:
        import gateway.observe.otlp  # noqa: F401


class Telemetry:
    """``use`` is told of every configuration."""

    def __init__(self) -> None:
        self._settings = Otel()
        self._exporter: Exporter | None = None
        self._upstreams: dict[str, Upstream] = {}
        self._canonical: Callable[[str], str] = str
        self._leaving: set[asyncio.Future[None]] = set()

    def use(self, settings: Otel, catalog: Catalog) -> None:
        """Go by these settings from now on. What an exporter that is not wanted any more still holds is sent in the background."""
        self._upstreams = {name: upstream(provider) for name, provider in catalog.providers.items()} if settings.endpoint else {}
        self._canonical = catalog.canonical
        if settings == self._settings:
            return
        before, self._exporter, self._settings = self._exporter, None, settings
        if settings.endpoint:
            from gateway.observe.otlp import Exporter

            self._exporter = Exporter(settings)
        if before is not None:
            left = asyncio.ensure_future(asyncio.to_thread(before.close))
            self._leaving.add(left)
            left.add_done_callback(self._leaving.discard)

    def add(self, call: Call) -> None:
        exporter = self._exporter
        if exporter is not None:
            exporter.add(call, self._upstreams, self._canonical)

    async def close(self) -> None:
        """Send what is left, as far as that is possible within some seconds."""
        exporter, self._exporter = self._exporter, None
        waiting = [*self._leaving, *([asyncio.ensure_future(asyncio.to_thread(exporter.close))] if exporter is not None else ())]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=CLOSE_S)
            if late:
                log.warning("the collector takes longer than %g s; what it has not got is lost", CLOSE_S)
