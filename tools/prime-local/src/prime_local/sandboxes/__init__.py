"""Simulated sandboxes: their records, their lives and their real processes."""
