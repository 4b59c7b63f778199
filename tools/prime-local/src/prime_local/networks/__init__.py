"""Outbound rules of sandboxes, and private networks between them."""
