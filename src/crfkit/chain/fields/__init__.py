"""The weights that a chain has."""
