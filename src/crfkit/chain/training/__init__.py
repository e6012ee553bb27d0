"""From options and sequences to a trained chain. Nothing needs scikit-learn."""
