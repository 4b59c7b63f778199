"""Writes the sync clients from the async ones; run it with ``python tools/syncgen``."""
