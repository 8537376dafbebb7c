"""What do several processes of one gateway know together? Implementations of ``core.ports.SharedState``."""
