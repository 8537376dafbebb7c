"""Turn integrity: what may leave, and when. Pure: no socket, no clock, no money."""
