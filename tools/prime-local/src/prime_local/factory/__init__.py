"""Dedicated clusters, and what runs on them."""
