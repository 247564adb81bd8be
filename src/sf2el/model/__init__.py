"""The model: its state, a row's way through it, and transitions."""
