"""Estimators: thin scikit-learn faces that name options, hand them to training and keep the model.

base                what all share: seed, progress, Ctrl-C, model files, checks that they are fitted
sklearn_later       how estimators become scikit-learn's only when scikit-learn is loaded
tags                what scikit-learn is told about inputs
chain               ChainCRF; chain_base: what it can do once it is trained
graph, grid         GraphCRF, GridCRF; pairwise: what both share
segmenter           ImageSegmenter; segmenter_prediction: what it can do once it is trained
refiner             Refiner
structure           StructureLearner; structure_base, structure_prediction, structure_weights: parts of it
"""
