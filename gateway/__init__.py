"""gateway: a self-hosted LLM gateway that validates a stream as a turn, not as a transport."""

__version__ = "0.1.0"
