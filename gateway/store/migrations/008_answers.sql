-- Answers of the cache that are one JSON body, by the digest of their request. Gone after ``until`` (epoch seconds).
CREATE TABLE answers (
    id    BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    until REAL NOT NULL
);
CREATE INDEX answers_until ON answers (until);
