"""Which experts are followed, and by how much."""
