"""From tables with numbers, identifiers and holes to columns of states."""
