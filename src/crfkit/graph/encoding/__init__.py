"""From tables, graphs and grids to encoded data, and states back to labels."""
