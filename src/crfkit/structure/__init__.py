"""Graphs whose edges are learned from tables."""
