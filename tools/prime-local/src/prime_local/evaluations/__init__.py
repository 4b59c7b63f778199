"""Evaluations that somebody runs elsewhere and pushes here."""
