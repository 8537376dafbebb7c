-- Responses that clients may go on from (previous_response_id), read back or delete.
CREATE TABLE responses (
    id       TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    created  REAL NOT NULL,
    previous TEXT NOT NULL,
    target   TEXT NOT NULL,
    body     BLOB NOT NULL,
    input    BLOB NOT NULL,
    n_bytes  INTEGER NOT NULL
);

-- Which of them are over a limit is read from this index alone.
CREATE INDEX responses_by_age ON responses (created, n_bytes, id);

-- Clients name single items of earlier responses (item_reference).
CREATE TABLE response_items (
    item_id     TEXT NOT NULL,
    response_id TEXT NOT NULL,
    PRIMARY KEY (item_id, response_id)
) WITHOUT ROWID;

CREATE INDEX response_items_by_response ON response_items (response_id);

CREATE TRIGGER responses_take_their_items AFTER DELETE ON responses BEGIN
    DELETE FROM response_items WHERE response_id = OLD.id;
END;
