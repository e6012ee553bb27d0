"""A file that an estimator owns: its contents go into pickles, and temporary files are deleted at the end."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from crfkit._values import Record

_CONTENTS = "__FILE_RESOURCE_DATA__"  # the key of the contents in pickles


class FileResource:
    """A named file, or a temporary one if `filename` is None.

    `name` is the file's name; None while there is no temporary file yet. Pickles of a temporary file hold its contents,
    and a new temporary file is made of them.

    >>> resource = FileResource(suffix=".crfsuite")
    >>> resource.ensure_name()
    >>> resource.name.endswith(".crfsuite")
    True
    """

    def __init__(
        self, filename: str | None = None, keep_tempfiles: bool = False, suffix: str = "", prefix: str = ""
    ) -> None:
        self.name = filename
        self.auto = filename is None
        self.keep_tempfiles = keep_tempfiles
        self.suffix = suffix
        self.prefix = prefix

    def ensure_name(self) -> None:
        """Make the temporary file if there is none."""
        if self.name is None:
            if not self.auto:
                raise ValueError("File name is not provided")
            handle, self.name = tempfile.mkstemp(self.suffix, self.prefix)
            os.close(handle)

    def cleanup(self) -> None:
        """Delete the temporary file, unless it is to be kept."""
        if self.name is not None and self.auto and not self.keep_tempfiles:
            with suppress(OSError):
                os.unlink(self.name)
            self.name = None

    def refresh(self) -> None:
        """Begin anew with an empty temporary file; a named file stays."""
        self.cleanup()
        self.ensure_name()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter modules may be gone
            self.cleanup()

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()
        if self.auto and self.name is not None:
            with suppress(OSError), open(self.name, "rb") as stream:
                state[_CONTENTS] = stream.read()
            state["name"] = None
        return state

    def __setstate__(self, state: Record) -> None:
        state = dict(state)
        contents = state.pop(_CONTENTS, None)
        state.pop("fd", None)  # of the process that wrote the pickle
        self.__init__()  # type: ignore[misc] # what older versions did not have
        self.__dict__.update(state)
        if contents is not None:
            self.name = None
            self.ensure_name()
            assert self.name is not None
            with open(self.name, "wb") as stream:
                stream.write(contents)
