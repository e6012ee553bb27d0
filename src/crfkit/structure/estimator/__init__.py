"""StructureLearner, a thin scikit-learn estimator."""
