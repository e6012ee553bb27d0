"""Files: readers of columns, tables and images, model files, checkpoints, limits, atomic writing."""
