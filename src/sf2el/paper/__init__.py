"""The published algorithm and its parts."""
