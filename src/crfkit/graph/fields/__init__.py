"""Which weights a pairwise field has, and the log-potentials they give."""
