"""Accounts: people, teams, keys and secrets."""
