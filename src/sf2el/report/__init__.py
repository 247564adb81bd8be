"""One self-contained HTML page: text, tables and figures, readable without a network."""
