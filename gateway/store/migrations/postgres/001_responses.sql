-- Responses that clients may go on from (previous_response_id), read back or delete.
CREATE TABLE responses (
    id       TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    created  DOUBLE PRECISION NOT NULL,
    previous TEXT NOT NULL,
    target   TEXT NOT NULL,
    body     BYTEA NOT NULL,
    input    BYTEA NOT NULL,
    n_bytes  BIGINT NOT NULL
);

CREATE INDEX responses_by_age ON responses (created, n_bytes, id);

-- Clients name single items of earlier responses (item_reference).
CREATE TABLE response_items (
    item_id     TEXT NOT NULL,
    response_id TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    PRIMARY KEY (item_id, response_id)
);

CREATE INDEX response_items_by_response ON response_items (response_id);
