-- A response brings its items; they go with it.
ALTER TABLE responses ADD COLUMN items TEXT NOT NULL DEFAULT '[]';

CREATE FUNCTION responses_bring_their_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO response_items (item_id, response_id)
    SELECT item, NEW.id FROM jsonb_array_elements_text(NEW.items::jsonb) AS item
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER responses_bring_their_items AFTER INSERT OR UPDATE OF items ON responses
FOR EACH ROW EXECUTE FUNCTION responses_bring_their_items();
