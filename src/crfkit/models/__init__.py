"""Models: trained fields. A model is an encoder, weights and how to infer; it predicts, saves and loads.

Nothing here needs scikit-learn.

chain               label chains; chain_tagging: column files through a chain
graph               tables, graphs and grids; all other models of pairwise fields contain one
structure_scores    the probability of rows under a graph that was learned
segmenter           images, by blocks of pixels
refiner             probability maps of another model, with their images
image_inference     which engine images are inferred with, and when it stops
"""
