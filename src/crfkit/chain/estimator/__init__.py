"""ChainCRF, a thin scikit-learn estimator over training and model."""
