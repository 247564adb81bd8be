"""The kinds of experts, their views and rates: what predicts and learns in the core."""
