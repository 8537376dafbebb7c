-- Client keys made while running. ``rules`` and ``former`` are JSON; secrets are kept as SHA-256 only.
CREATE TABLE client_keys (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    sha256  TEXT NOT NULL UNIQUE,
    hint    TEXT NOT NULL,
    created REAL NOT NULL,
    rotated REAL NOT NULL,
    revoked REAL NOT NULL,
    note    TEXT NOT NULL,
    rules   TEXT NOT NULL,
    former  TEXT NOT NULL
);

-- Keys, or groups of keys, that share a budget.
CREATE TABLE key_groups (
    name             TEXT PRIMARY KEY,
    parent           TEXT NOT NULL,
    budget_usd_day   REAL NOT NULL,
    budget_usd_month REAL NOT NULL
);

-- Keys of providers, sealed under a master key that is not in here.
CREATE TABLE provider_accounts (
    provider TEXT NOT NULL,
    label    TEXT NOT NULL,
    key_id   TEXT NOT NULL,
    nonce    BLOB NOT NULL,
    sealed   BLOB NOT NULL,
    created  REAL NOT NULL,
    settings TEXT NOT NULL,
    PRIMARY KEY (provider, label)
);

-- One row that counts the changes of the three tables above: processes look at it to see whether to read them again.
CREATE TABLE key_revision (
    id     INTEGER PRIMARY KEY,
    number INTEGER NOT NULL
);
INSERT INTO key_revision (id, number) VALUES (1, 1);

-- What each process has spent in all, in billionths of a dollar, by UTC day (2026-11-30) and month (2026-11).
CREATE TABLE spent (
    scope   TEXT NOT NULL,
    period  TEXT NOT NULL,
    process TEXT NOT NULL,
    nanos   INTEGER NOT NULL,
    PRIMARY KEY (period, scope, process)
);
