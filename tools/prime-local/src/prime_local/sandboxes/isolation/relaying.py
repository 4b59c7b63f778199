"""Relaying: from a descriptor to a socket and back, in a process of its own."""

from __future__ import annotations

import selectors
import socket

_CONNECT_SECONDS = 10.0
_PIECE_BYTES = 65536
# Told first, so that the other end knows of the connection.
CONNECTED = b"+"


def relay(end: int, address: str, port: int) -> None:
    """Connect in this process's network namespace, and copy both ways until both are over.

    Args:
        end: a stream socket's descriptor; its other end reads `CONNECTED` first.
        address: where to.
        port: where to.

    Raises:
        OSError: there is no connection, or one of the two broke.
    """
    near = socket.socket(fileno=end)
    far = socket.create_connection((address, port), _CONNECT_SECONDS)
    far.settimeout(None)
    near.sendall(CONNECTED)
    others = {near: far, far: near}
    with selectors.DefaultSelector() as selector:
        for each in others:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                source = near if key.fileobj is near else far
                if piece := source.recv(_PIECE_BYTES):
                    others[source].sendall(piece)
                else:
                    selector.unregister(source)
                    others[source].shutdown(socket.SHUT_WR)
