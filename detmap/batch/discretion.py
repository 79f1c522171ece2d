"""Messages for participants about files that cannot be scored, without information about the ground truth."""

from __future__ import annotations

from collections.abc import Callable

from detmap.batch.limited_process import LimitError
from detmap.errors import DetmapError

_GENERAL = (
    "it cannot be scored, and saying why would tell of the ground truth; is it of this data set, in a format of this task, "
    "with the ids that it gives to images and categories?"
)


class WithheldError(DetmapError):
    """An error of which participants may see only `said`, not `full`."""

    def __init__(self, said: str, full: str) -> None:
        super().__init__(said)
        self.said, self.full = said, full

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.said, self.full)


def withheld(error: Exception, full: str, path: str, read_alone: Callable[[], object]) -> WithheldError:
    """Return an error whose message tells nothing about the ground truth.

    A message that reading the file alone (`read_alone`) also produces is kept. Any other message is replaced by a
    general one.
    """
    said = f"{path}: {_GENERAL}"
    if isinstance(error, LimitError):
        said = str(error)
    elif isinstance(error, DetmapError):
        try:
            read_alone()
        except DetmapError as alone:
            if str(alone) == str(error):
                said = full
        except Exception:  # of a reader that needs the ground truth
            pass
    return WithheldError(said, full)
