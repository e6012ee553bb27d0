"""Trained segmenters and refiners."""
