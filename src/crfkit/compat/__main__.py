"""``python -m crfkit.compat SCRIPT …``: run a script with crfkit in the place of pycrfsuite and sklearn_crfsuite."""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec

from crfkit.compat.installing import install

USAGE = """usage: python -m crfkit.compat SCRIPT [ARGUMENT …]
       python -m crfkit.compat -m MODULE [ARGUMENT …]

Runs a script or a module with crfkit in the place of pycrfsuite and sklearn_crfsuite."""


def main(arguments: list[str]) -> int:
    """Run the script or module that the arguments name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    as_module = arguments[0] == "-m"
    rest = arguments[1:] if as_module else arguments
    if not rest:
        print("error: -m needs the name of a module", file=sys.stderr)
        return 2
    if not as_module and rest[0].startswith("-"):
        print(f"error: unknown option {rest[0]}; give the script first\n\n{USAGE}", file=sys.stderr)
        return 2
    if not as_module and not os.path.exists(rest[0]):
        print(f"error: there is no script {rest[0]}", file=sys.stderr)
        return 2
    if not as_module and os.path.isdir(rest[0]) and not os.path.exists(os.path.join(rest[0], "__main__.py")):
        print(f"error: {rest[0]} is a directory without __main__.py; give a script", file=sys.stderr)
        return 2
    install()
    sys.argv[:] = rest
    sys.path[0] = os.getcwd() if as_module else os.path.dirname(os.path.abspath(rest[0]))
    if as_module and not _is_there(rest[0]):
        print(f"error: there is no module {rest[0]}", file=sys.stderr)
        return 2
    if as_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")
    return 0


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # of its package; a name such as ..x
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
