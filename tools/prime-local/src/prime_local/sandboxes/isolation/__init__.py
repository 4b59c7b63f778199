"""How far sandboxes are kept from this machine and from each other: full, bwrap or process."""
