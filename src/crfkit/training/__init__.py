"""Training: from options and data to a model, by a field, a loss, a penalty and a solver. Nothing needs scikit-learn.

options, defaults   penalty, solver, tolerance, threads, seed; what "auto" and None stand for
chain               label chains; chain_problem, chain_selection: parts of it; batches: partial_fit
early_stopping      development sets; transfer: weights of one model for another, by name
graph               tables, graphs and grids; scaling: standardised features; smoothing: edges that are too strong
segmenter           images with masks; segmenter_blocks, segmenter_search, segmenter_weights: parts of it
refiner             probability maps with images and masks
structure           graphs whose edges are learned; structure_*: parts of it
path                a model for each of several strengths of the penalty
progress, record    what is printed during training; what the model file says about it
"""
