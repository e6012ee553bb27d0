"""Choices that all trials share, made before any trial."""

RESERVED = 60  # images, the first by name, that no trial draws: choices are made on them
SIFT_CELL = 8  # pixels; chosen by features.py
