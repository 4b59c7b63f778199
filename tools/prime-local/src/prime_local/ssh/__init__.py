"""SSH into sandboxes: sessions, the server, and what a client may do there."""
