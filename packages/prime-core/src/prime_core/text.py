"""Text that arrives as bytes, a piece at a time."""

from __future__ import annotations

import codecs

__all__ = ["TextDecoder"]


class TextDecoder:
    """Decodes one stream of UTF-8, however its bytes are cut.

    All that it returns, joined, is the text of the whole stream: a character that is cut in two
    comes with its last byte. Bytes that are not UTF-8 become U+FFFD, as in `bytes.decode`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Takes received bytes and returns the characters that they complete."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Ends the stream: returns U+FFFD for a character that it left incomplete."""
        return self._decoder.decode(b"", final=True)
