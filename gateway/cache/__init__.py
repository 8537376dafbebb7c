"""Answers that are given again: which request is the same, what is kept, who waits for whom."""
