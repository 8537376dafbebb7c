"""Doors: paths and status lines, nothing else."""
