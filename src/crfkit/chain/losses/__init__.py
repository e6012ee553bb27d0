"""Losses of chains."""
