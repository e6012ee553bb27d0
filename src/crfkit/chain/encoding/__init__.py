"""From sequences, files and frames to encoded data, and labels back to names."""
