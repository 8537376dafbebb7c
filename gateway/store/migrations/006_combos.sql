-- Combos that were made while running. "body" is JSON: the fields of a [[combos]] table but for its name.
CREATE TABLE combos (
    name    TEXT PRIMARY KEY,
    place   INTEGER NOT NULL,
    body    TEXT NOT NULL,
    changed REAL NOT NULL
);

-- One row that counts their changes: processes look at it to see whether to read them again.
CREATE TABLE combo_revision (
    id     INTEGER PRIMARY KEY,
    number INTEGER NOT NULL
);
INSERT INTO combo_revision (id, number) VALUES (1, 1);
