"""Words everybody uses: requests, events, errors and ports. No I/O; msgspec and the standard library only."""
