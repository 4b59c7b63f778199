"""The per-sandbox gateway: commands over the Connect protocol."""
