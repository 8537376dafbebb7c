"""Implementations of core.ports that people and machines read."""
