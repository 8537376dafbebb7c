-- A response brings its items and takes them along: one statement a response, and one index less to write (59 -> 33 µs).
ALTER TABLE responses ADD COLUMN items TEXT NOT NULL DEFAULT '[]';
UPDATE responses SET items = (SELECT json_group_array(item_id) FROM response_items WHERE response_id = responses.id);

DROP TRIGGER responses_take_their_items;
DROP INDEX response_items_by_response;

CREATE TRIGGER responses_bring_their_items AFTER INSERT ON responses BEGIN
    INSERT OR IGNORE INTO response_items (item_id, response_id) SELECT value, NEW.id FROM json_each(NEW.items);
END;

CREATE TRIGGER responses_take_their_items AFTER DELETE ON responses BEGIN
    DELETE FROM response_items WHERE response_id = OLD.id AND item_id IN (SELECT value FROM json_each(OLD.items));
END;
