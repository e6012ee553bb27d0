"""Other tools' interfaces on top of crfkit: their Python modules and their commands."""
