"""How does a prompt become smaller without saying less? Pure: segments of text in, edits out, and a gate behind every engine."""
