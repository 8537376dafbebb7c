-- Requests that were not let in, or were wrong themselves, are no failures. What was counted before counts as it did.
ALTER TABLE usage_hourly ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
