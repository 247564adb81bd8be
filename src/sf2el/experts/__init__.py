"""The experts: what predicts and learns."""
