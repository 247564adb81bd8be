"""The model: a state within its budget, the transitions of its spaces, and the strategy of the default."""
