"""Files beside the log that a start cannot use: each is reported, and the store goes on without it."""

from typing import NamedTuple


class FileProblem(NamedTuple):
    """A file of the store directory, by its name, and what is wrong with it and what is done instead, in words."""

    file: str
    reason: str

    def __str__(self) -> str:
        """Both."""
        return f"{self.file} cannot be used: {self.reason}"
