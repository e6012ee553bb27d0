"""GraphCRF and GridCRF, thin scikit-learn estimators over training and model."""
