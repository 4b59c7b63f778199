"""Wallets that rented things are paid from, and what training runs cost."""
