"""Volumes of training: named storage for runs. Those of sandboxes are in `checkpoints`."""
