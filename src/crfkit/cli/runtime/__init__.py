"""Code that all commands share while they run: output, progress, signals, streams, errors, help."""
