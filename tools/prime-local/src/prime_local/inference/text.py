"""Text that a very small language model makes up: the same for the same seed."""

from __future__ import annotations

import math
import random
import re
from bisect import bisect
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources

_STATE_WORDS = 2
_BYTES_PER_TOKEN = 4
_PIECE = re.compile(r"\s*\S{1,12}|\s+")

# What follows two words: the words, and the running sums of how often each does.
_Transitions = dict[tuple[str, ...], tuple[list[str], list[int]]]


def count_tokens(text: str) -> int:
    """Return about how many tokens a model would make of a text."""
    return math.ceil(len(text.encode(errors="replace")) / _BYTES_PER_TOKEN)


def pieces(text: str) -> Iterator[str]:
    """Cut a text into what counts as tokens here: words of at most 12 characters."""
    return (match.group() for match in _PIECE.finditer(text))


class Writer:
    """Makes up text.

    Args:
        seed: the same text for the same seed.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def endless(self) -> Iterator[str]:
        """Yield tokens, for ever."""
        yield from self._sentence("")
        while True:
            yield from self._sentence(" ")

    def passage(self) -> Iterator[str]:
        """Yield the tokens of some sentences."""
        gap = ""
        for _ in range(self._random.randint(1, 4)):
            yield from self._sentence(gap)
            gap = " "

    def word(self) -> str:
        """Return a word of letters."""
        word = self._random.choice(_words())
        return "".join(filter(str.isalpha, word)) or "word"

    def number(self, lowest: int, highest: int) -> int:
        return self._random.randint(lowest, highest)

    def _sentence(self, gap: str) -> Iterator[str]:
        begin, end, transitions = _trained()
        # The walk of the library itself draws from the randomness of the whole process.
        state: tuple[str, ...] = (begin,) * _STATE_WORDS
        draw = self._random.random
        while True:
            words, sums = transitions[state]
            word = words[bisect(sums, draw() * sums[-1])]
            if word == end:
                return
            yield gap + word
            gap = " "
            state = (*state[1:], word)


@lru_cache(maxsize=1)
def _trained() -> tuple[str, str, _Transitions]:
    """Train the model, when it is first asked something; tells what begins and ends sentences."""
    import markovify  # Whoever asks no model need not load it.

    chain = markovify.Text(_corpus(), state_size=_STATE_WORDS).compile().chain
    return markovify.chain.BEGIN, markovify.chain.END, chain.model


@lru_cache(maxsize=1)
def _words() -> list[str]:
    return _corpus().split()


def _corpus() -> str:
    return resources.files(__package__).joinpath("corpus.txt").read_text("utf-8")
