"""The login by a browser: how an API key comes to this machine."""
