"""Wapiti's command as ``crfkit-wapiti train|label|dump``, with its flags, files and output.

Models are Wapiti's text files. Everything is computed by crfkit: training by its solvers, labelling by its inference.
"""
