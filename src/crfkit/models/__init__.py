"""Trained fields: an encoder, weights and how to infer; they predict, are saved and are loaded."""
