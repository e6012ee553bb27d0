"""Segmentation of images by fields on blocks of pixels, and the refinement of probability maps."""
