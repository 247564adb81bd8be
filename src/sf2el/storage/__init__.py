"""Models as bytes and files."""
