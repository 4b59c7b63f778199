"""A platform that makes things; the first of its answers can be scripted."""

from __future__ import annotations

from abc import ABC, abstractmethod

from raw_server import RawServer, Received, Step, answer

__all__ = ["ScriptedPlatform"]


class ScriptedPlatform(ABC):
    """Makes things as its subclass says, and forgets what is deleted."""

    def __init__(self, server: RawServer, *first: Step) -> None:
        self.first = list(first)
        self.deleted: list[str] = []
        server.respond = self.respond

    def respond(self, request: Received) -> Step:
        if request.method == "DELETE":
            self.deleted.append(request.target.rpartition("/")[2])
            return answer(204)
        if request.method != "POST":
            return answer()
        made = self.make(request)
        return self.first.pop(0) if self.first else answer(200, {"id": made})

    @abstractmethod
    def make(self, request: Received) -> str:
        """Makes a thing, and returns its id."""
