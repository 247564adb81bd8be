"""Which features are there, and what follows from that."""
