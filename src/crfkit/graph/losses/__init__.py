"""Losses of pairwise fields."""
