"""What the system says about a file or folder, in words for people, and whether the trouble may pass."""

import errno
import os
from pathlib import Path

from ripstop.runtime.performers import Refused, TryAgain

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EBUSY, errno.ESTALE)
_ADVICE = {
    errno.EACCES: "Allow this user to read and write there.",
    errno.EPERM: "It must be writable, and on a file system that has hard links.",
    errno.EROFS: "Make it writable, or choose another folder.",
    errno.ENOENT: "Put it back, or choose another folder.",
    errno.ENOTDIR: "There is a file where a folder should be; move it away.",
    errno.EISDIR: "There is a folder where a file should be; move it away.",
    errno.ELOOP: "It is a symbolic link, and links are not followed; move it away.",
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room on the disk.",
    errno.ENOLCK: "Choose a folder on a file system that knows flock.",
    errno.ENOTSUP: "Choose a folder on a file system that knows flock and hard links.",
}


def in_words(place: Path, error: OSError) -> Refused | TryAgain:
    number = error.errno or 0
    said = f"{str(place)!r} cannot be used: {os.strerror(number)}. {_ADVICE.get(number, '')}".rstrip()
    return TryAgain(said) if number in _PASSING else Refused(said)
