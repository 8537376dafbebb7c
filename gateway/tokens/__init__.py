"""How many tokens is this? Estimates that cost nothing, for limits and routing."""
