"""Tables, graphs and grids of known structure, step by step, from graph and data to training and estimators."""
