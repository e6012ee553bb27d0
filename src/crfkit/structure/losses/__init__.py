"""Losses of fields whose edges are being learned."""
