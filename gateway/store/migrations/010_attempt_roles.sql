-- What an attempt was for: '' to answer, panel, judge, resumed.
ALTER TABLE attempts ADD COLUMN role TEXT NOT NULL DEFAULT '';
