"""Packages that only some functions need. Each belongs to an extra, as in pip install 'crfkit[plots]'."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from crfkit.errors import MissingPackageError

# module: (name of the package, extra that brings it)
PACKAGES = {
    "cryptography": ("cryptography", "distributed"),
    "dask": ("dask", "distributed"),
    "distributed": ("distributed", "distributed"),
    "fsspec": ("fsspec", "distributed"),
    "matplotlib": ("matplotlib", "plots"),
    "maxflow": ("PyMaxflow", "cuts"),
    "networkx": ("networkx", "graphs"),
    "pandas": ("pandas", "frames"),
    "PIL": ("Pillow", "images"),
    "polars": ("polars", "frames"),
    "skimage": ("scikit-image", "superpixels"),
    "torch": ("torch", "torch"),
}


def load(module: str, who: str, instead: str = "") -> ModuleType:
    """Return a module of an extra; raise MissingPackageError, which names what to install, if it is missing.

    `who` begins the message, as in "plots need". `instead` ends it: what works without the package.

    >>> load("pandas", "edges_frame needs").__name__
    'pandas'
    >>> import sys; before = sys.modules.get("pandas"); sys.modules["pandas"] = None
    >>> load("pandas", "edges_frame needs")
    Traceback (most recent call last):
        ...
    crfkit.errors.MissingPackageError: edges_frame needs pandas; install it with pip install 'crfkit[frames]'
    >>> sys.modules["pandas"] = before

    """
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there, but something that it imports is not
        raise _missing(module, who, instead) from None


def check_installed(module: str, who: str, instead: str = "") -> None:
    """Raise MissingPackageError if a module of an extra cannot be imported; do not import it."""
    if not is_installed(module):
        raise _missing(module, who, instead)


def is_installed(module: str) -> bool:
    """Return whether a module of an extra can be imported.

    >>> is_installed("maxflow")
    True
    """
    return find_spec(module) is not None


def how_to_install(module: str) -> str:
    """Return the command that installs the extra of a module.

    >>> how_to_install("PIL")
    "pip install 'crfkit[images]'"
    """
    return f"pip install 'crfkit[{PACKAGES[module.partition('.')[0]][1]}]'"


def _missing(module: str, who: str, instead: str) -> MissingPackageError:
    package = PACKAGES[module.partition(".")[0]][0]
    more = f"; {instead}" if instead else ""
    return MissingPackageError(f"{who} {package}; install it with {how_to_install(module)}{more}")
