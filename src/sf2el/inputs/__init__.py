"""Rows, tables and labels as they come in; parameters and their checks."""
