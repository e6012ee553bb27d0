"""Log Z, marginals and best labellings of pairwise fields. An engine is a file and a line of `engines.py`."""
