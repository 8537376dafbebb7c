"""Which metrics are there? One row each: kind, labels, how several workers' values become one, what it says.

Every label's values are bounded by construction: surfaces and outcomes are tables, ``model`` and ``provider`` are ids of the
catalogue or ``other``. A ``Dump`` is plain data: values by family and labels, so that it may travel as msgpack.
"""
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from prometheus_client import Metric

OTHER: Final = "other"

Labels = tuple[str, ...]
Dump = dict[str, list[tuple[Labels, list[float]]]]           # of a histogram: a count for each bucket, then the sum

LONG: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
FIRST: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
SHORT: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Family(msgspec.Struct, frozen=True):
    """``merge``: what several workers' values are together; counters and histograms are always summed."""
    kind: Literal["counter", "gauge", "histogram"]
    labels: Labels
    says: str
    bounds: tuple[float, ...] = ()
    merge: Literal["sum", "max"] = "sum"


FAMILIES: Final[dict[str, Family]] = {
    "gateway_requests_total": Family("counter", ("surface", "model", "provider", "outcome"),
                                     "Requests that ended. outcome: ok, failed, broken, client_gone or refused."),
    "gateway_request_seconds": Family("histogram", ("surface", "model", "provider"),
                                      "Time from a request's first byte to its end.", LONG),
    "gateway_upstream_seconds": Family("histogram", ("model", "provider"), "Of that, time spent waiting for upstreams.", LONG),
    "gateway_overhead_seconds": Family("histogram", ("surface",), "Of that, the rest: the gateway and the client.", SHORT),
    "gateway_ttft_seconds": Family("histogram", ("model", "provider"), "Time from a stream's request to its first token.", FIRST),
    "gateway_stream_outcomes_total": Family("counter", ("outcome",), "Streams by how they ended: committed_ok, "
                                            "failed_before_commit, failed_after_commit or client_gone."),
    "gateway_attempts_total": Family("counter", ("model", "provider", "outcome"),
                                     "Attempts at upstreams. outcome: ok, left (another was faster), or the kind of the failure."),
    "gateway_failovers_total": Family("counter", ("from", "to", "reason"),
                                      "Failed attempts after which another was made; from and to are providers."),
    "gateway_hedges_total": Family("counter", ("result",), "Second attempts beside a silent first: won, lost or failed."),
    "gateway_tokens_total": Family("counter", ("direction", "modality", "cached"), "Tokens. direction: input or output; "
                                   "modality: text, reasoning, image or audio; cached: no, read or write."),
    "gateway_cost_usd_total": Family("counter", ("model", "provider"), "What attempts cost, as far as prices are known."),
    "gateway_breaker_state": Family("gauge", ("provider",), "0 closed, 1 degraded, 2 half-open, 3 open.", merge="max"),
    "gateway_cooldowns": Family("gauge", ("provider",), "Keys, models and whole providers that rest now.", merge="max"),
    "gateway_limit_rejections_total": Family("counter", ("scope",),
                                             "Requests refused by a limit: key, budget, inflight or request_tokens."),
    "gateway_cache_total": Family("counter", ("result",), "Looks into the cache: hit, miss, or idempotency (a key's answer again)."),
    "gateway_guards_total": Family("counter", ("guard", "action"), "Requests on which a guard, or the context, acted: masked, "
                                   "blocked, warned, replaced, failed, trimmed."),
    "gateway_db_queue_depth": Family("gauge", (), "Requests and rows that are not in the store yet."),
    "gateway_ledger_rows_total": Family("counter", (), "Requests whose rows are on the disk."),
    "gateway_ledger_dropped_total": Family("counter", ("kind",),
                                           "Rows for which there was no room: detail (attempts, bodies) or request."),
    "gateway_in_flight_requests": Family("gauge", (), "Requests under way."),
    "gateway_open_streams": Family("gauge", (), "Of them, those that stream."),
    "gateway_loop_lag_seconds": Family("histogram", (), "How late a timer of the event loop was.", SHORT),
    "gateway_tasks": Family("gauge", (), "Tasks of the event loop: requests, streams and work in the background."),
    "gateway_webhooks_total": Family("counter", ("result",), "Notices to webhooks: sent, failed or dropped."),
    "gateway_shared_state_down": Family("gauge", (), "1 while what nodes share cannot be reached and they go on alone.", merge="max"),
    "gateway_nodes": Family("gauge", (), "Processes that share limits and cooldowns, as far as is known.", merge="max"),
    "gateway_build_info": Family("gauge", ("version",), "Always 1.", merge="max"),
    "process_cpu_seconds_total": Family("counter", (), "User and system time of the process."),
    "process_resident_memory_bytes": Family("gauge", (), "Memory of the process."),
    "process_virtual_memory_bytes": Family("gauge", (), "Address space of the process."),
    "process_open_fds": Family("gauge", (), "Open file descriptors."),
    "process_max_fds": Family("gauge", (), "How many there may be.", merge="max"),
    "process_start_time_seconds": Family("gauge", (), "When the process started, epoch seconds.", merge="max"),
}


def merged(dumps: Iterable[Dump]) -> Dump:
    """Several workers' as one. What is of no family of this version is left out."""
    sums: dict[str, dict[Labels, list[float]]] = {}
    for dump in dumps:
        for name, rows in dump.items():
            family = FAMILIES.get(name)
            if family is None:
                continue
            into = sums.setdefault(name, {})
            for labels, values in rows:
                found = into.get(tuple(labels))
                if found is None:
                    into[tuple(labels)] = list(values)
                elif family.merge == "max":
                    found[:] = map(max, found, values)
                else:
                    found[:] = [a + b for a, b in zip(found, values, strict=True)]
    return {name: list(rows.items()) for name, rows in sums.items()}


def render(dump: Dump, accept: str = "") -> tuple[str, bytes]:
    """(content type, page) as the scraper wants it: Prometheus' text format or OpenMetrics."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(dump))
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


class _Collected:
    """A dump as prometheus_client's collectors are."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump

    def collect(self) -> "Iterable[Metric]":
        for name, family in FAMILIES.items():
            rows = self._dump.get(name)
            if rows:
                yield _metric(name, family, rows)


def _metric(name: str, family: Family, rows: list[tuple[Labels, list[float]]]) -> "Metric":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    if family.kind == "histogram":
        histogram = HistogramMetricFamily(name, family.says, labels=family.labels)
        for labels, values in rows:
            histogram.add_metric(labels, _buckets(family.bounds, values), values[-1])
        return histogram
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    plain = kind(name, family.says, labels=family.labels)
    for labels, values in rows:
        plain.add_metric(labels, values[0])
    return plain


def _buckets(bounds: tuple[float, ...], values: list[float]) -> list[tuple[str, float]]:
    """Cumulative, as they are exposed."""
    total, made = 0.0, []
    for bound, n in zip((*map(str, bounds), "+Inf"), values, strict=False):
        total += n
        made.append((bound, total))
    return made
