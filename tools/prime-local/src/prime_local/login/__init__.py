"""The login by a browser."""
