"""Bytes cut at any places, as a network may hand them over."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st


def pieces_of(content: bytes) -> st.SearchStrategy[list[bytes]]:
    """Pieces, empty ones too, that make up the content."""

    def cut(places: list[int]) -> list[bytes]:
        return [content[a:b] for a, b in pairwise([0, *sorted(places), len(content)])]

    return st.lists(st.integers(0, len(content)), max_size=12).map(cut)
