-- What happened: one row a request, one an attempt. Ids grow with time (store.ledger).
CREATE TABLE requests (
    id          INTEGER PRIMARY KEY,
    at          REAL NOT NULL,
    request     TEXT NOT NULL,
    surface     TEXT NOT NULL,
    wire        TEXT NOT NULL,
    operation   TEXT NOT NULL,
    asked       TEXT NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    routed      TEXT NOT NULL,
    key         TEXT NOT NULL,
    client      TEXT NOT NULL,
    session     TEXT NOT NULL,
    strategy    TEXT NOT NULL,
    decision    TEXT NOT NULL,
    stream      INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    error       TEXT NOT NULL,
    message     TEXT NOT NULL,
    finish      TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cached      INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    estimated   INTEGER NOT NULL,
    cost_usd    REAL,
    latency_ms  REAL NOT NULL,
    ttft_ms     REAL,
    upstream_ms REAL NOT NULL,
    overhead_ms REAL NOT NULL,
    bytes_in    INTEGER NOT NULL,
    bytes_out   INTEGER NOT NULL
);

CREATE INDEX requests_by_name ON requests (request);

-- Times of an attempt count from the start of its request.
CREATE TABLE attempts (
    request_id     INTEGER NOT NULL,
    n              INTEGER NOT NULL,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    account        TEXT NOT NULL,
    status         INTEGER NOT NULL,
    outcome        TEXT NOT NULL,
    error          TEXT NOT NULL,
    message        TEXT NOT NULL,
    started_ms     REAL NOT NULL,
    headers_ms     REAL,
    ttft_ms        REAL,
    ended_ms       REAL NOT NULL,
    upstream_ms    REAL NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    cached         INTEGER NOT NULL,
    cache_write    INTEGER NOT NULL,
    reasoning      INTEGER NOT NULL,
    estimated      INTEGER NOT NULL,
    cost_usd       REAL,
    upstream_id    TEXT NOT NULL,
    upstream_model TEXT NOT NULL,
    PRIMARY KEY (request_id, n)
) WITHOUT ROWID;

-- Bodies, where they are kept: masked, cut, compressed.
CREATE TABLE artifacts (
    request_id INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    encoding   TEXT NOT NULL,
    n_bytes    INTEGER NOT NULL,
    cut        INTEGER NOT NULL,
    n_kept     INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (request_id, kind)
);

-- Sums that outlive the rows. `at` is where the hour or the day begins, UTC.
CREATE TABLE usage_hourly (
    at          INTEGER NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    key         TEXT NOT NULL,
    client      TEXT NOT NULL,
    requests    INTEGER NOT NULL,
    ok          INTEGER NOT NULL,
    gone        INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cached      INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost_usd    REAL NOT NULL,
    unpriced    INTEGER NOT NULL,
    latency_ms  REAL NOT NULL,
    upstream_ms REAL NOT NULL,
    bytes_out   INTEGER NOT NULL,
    PRIMARY KEY (at, provider, model, key, client)
) WITHOUT ROWID;

CREATE TABLE usage_daily (
    at          INTEGER NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    key         TEXT NOT NULL,
    client      TEXT NOT NULL,
    requests    INTEGER NOT NULL,
    ok          INTEGER NOT NULL,
    gone        INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cached      INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost_usd    REAL NOT NULL,
    unpriced    INTEGER NOT NULL,
    latency_ms  REAL NOT NULL,
    upstream_ms REAL NOT NULL,
    bytes_out   INTEGER NOT NULL,
    PRIMARY KEY (at, provider, model, key, client)
) WITHOUT ROWID;

-- How targets fared, attempt by attempt; an empty error is a success.
CREATE TABLE attempts_hourly (
    at          INTEGER NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    error       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cost_usd    REAL NOT NULL,
    unpriced    INTEGER NOT NULL,
    upstream_ms REAL NOT NULL,
    PRIMARY KEY (at, provider, model, error)
) WITHOUT ROWID;

-- How times are spread: `bucket` is a step of a tenth (store.rollups).
CREATE TABLE timings_hourly (
    at       INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model    TEXT NOT NULL,
    measure  TEXT NOT NULL,
    bucket   INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (at, provider, model, measure, bucket)
) WITHOUT ROWID;
