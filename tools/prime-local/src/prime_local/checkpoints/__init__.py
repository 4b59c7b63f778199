"""Checkpoints of sandboxes, and volumes, which are made of checkpoints."""
