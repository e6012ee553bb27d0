"""From options and graphs to a trained field. Nothing needs scikit-learn."""
