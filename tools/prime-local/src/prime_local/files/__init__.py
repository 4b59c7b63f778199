"""Files of sandboxes: uploads, downloads and direct reads through the gateway."""
