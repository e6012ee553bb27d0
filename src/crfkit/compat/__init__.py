"""Other tools' interfaces on top of crfkit: their Python modules and their commands."""

from crfkit.compat.installing import install, installed, uninstall

__all__ = ["install", "installed", "uninstall"]
