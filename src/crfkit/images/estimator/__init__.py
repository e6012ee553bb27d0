"""ImageSegmenter and Refiner, thin scikit-learn estimators."""
