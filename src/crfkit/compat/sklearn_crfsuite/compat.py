"""The base class of the estimator, under the name that sklearn-crfsuite has for it."""

from sklearn.base import BaseEstimator

__all__ = ["BaseEstimator"]
