"""The search for edges: options, data, path, selection, refit, record."""
