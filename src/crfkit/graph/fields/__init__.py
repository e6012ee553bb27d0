"""The weights of a pairwise field, and the log-potentials they give."""
