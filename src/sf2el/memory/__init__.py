"""Bytes: budgets, and what is kept in them."""
