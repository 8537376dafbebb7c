-- Copies that no client waits for are told from requests; an upstream that serves another model than it was asked for is marked.
ALTER TABLE requests ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN drift INTEGER NOT NULL DEFAULT 0;
