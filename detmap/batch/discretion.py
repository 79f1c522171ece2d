"""Error messages that reveal nothing about the ground truth to the participants of a challenge."""

from __future__ import annotations

from collections.abc import Callable

from detmap.batch.limited_process import LimitError
from detmap.errors import DetmapError

_GENERAL = (
    "it cannot be scored, and saying why would tell of the ground truth; is it of this data set, in a format of this task, "
    "with the ids that it gives to images and categories?"
)


class WithheldError(DetmapError):
    """An error with two messages: `said`, which participants may see, and `full`, which they may not."""

    def __init__(self, said: str, full: str) -> None:
        super().__init__(said)
        self.said, self.full = said, full

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.said, self.full)


def withheld(error: Exception, full: str, path: str, read_alone: Callable[[], object]) -> WithheldError:
    """Return an error whose message reveals nothing about the ground truth.

    The message is kept if a limit was reached, or if reading the file without the ground truth (`read_alone`) gives the
    same message. Any other message is replaced by a general message.
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
        except Exception:  # reading without the ground truth may raise any error
            pass
    return WithheldError(said, full)
