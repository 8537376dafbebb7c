-- What routing learned and a restart must not forget: cooldowns, breakers, limits that refusals told.
CREATE TABLE routing_state (
    book  TEXT NOT NULL,
    key   TEXT NOT NULL,
    value BLOB NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (book, key)
) WITHOUT ROWID;
