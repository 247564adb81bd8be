"""Rows, tables and labels as they come in."""
