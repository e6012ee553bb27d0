"""Encoders: from what a person has to encoded data, and names back.

sequences           sequences of tokens, column files; the vocabulary of a chain
labels              labels of chains: any strings, numbers or tuples, sorted, and in model files
states              labels of nodes to state numbers and back; unknown labels
tables              tables (multi-label); table_columns, table_inputs: their columns, edges and features
structure_tables    tables that structure is learned from; bins: numbers cut into groups
graphs              lists of graphs; graph_samples: the forms in which people give graphs
tables_or_graphs    which of the two X is
grids               images and volumes with a node per pixel
image_pairs         images with masks; image_names: errors that name the image
image_blocks        between pixels and square blocks; block_grids: grids of blocks for segmenters
image_regions       pixels, blocks or superpixels as nodes
probability_maps    probabilities of another model; calibrated: graphs whose nodes have them as features
"""
