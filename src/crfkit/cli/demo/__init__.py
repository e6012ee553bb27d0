"""`crfkit demo`: a tour on generated data."""
