"""Estimators: what most people use."""
