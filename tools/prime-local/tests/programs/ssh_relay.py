"""OpenSSH's ProxyCommand for a session: names it, then passes bytes both ways.

python ssh_relay.py HOST PORT SESSION_ID
"""

from __future__ import annotations

import os
import socket
import sys
import threading

host, port, session_id = sys.argv[1:]
link = socket.create_connection((host, int(port)))
link.sendall(f"PRIME-SSH-SESSION {session_id}\n".encode())


def send() -> None:
    while data := os.read(0, 65536):
        link.sendall(data)


threading.Thread(target=send, daemon=True).start()
while data := link.recv(65536):
    os.write(1, data)
