"""Typed views of the tables that the documentation describes.

A key that no class here names is kept and reported, not refused: prime-rl has more of them than
its documentation, and a newer image more than this package.
"""
