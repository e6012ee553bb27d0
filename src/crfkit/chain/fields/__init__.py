"""Which weights a chain has."""
