"""Configs of hosted runs: loading, checking, and what they make of a dispatch."""
