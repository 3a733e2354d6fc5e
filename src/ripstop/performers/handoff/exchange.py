"""Replacing a file only if it still is what it was, which `rename` cannot do: it does not look at what it overwrites.

The two files change places (`renameat2` with `RENAME_EXCHANGE`), and only then is the old one checked. If it is
not what was expected, an editor saved at that moment, and they change back. A process that is killed between the
two leaves that edit where the new file was: the next process finds it there (`Folder.rescue`). Where the system or
the file system cannot exchange, there is a plain rename right after a last check, with a window of microseconds.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ripstop.runtime.failpoints import failpoint

_EXCHANGE = 2
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

Place = tuple[int, str]
"""The descriptor of a folder, and a name in it."""


def replace_if(new: Place, old: Place, over: str, sha_of: Callable[[int, str], str]) -> bool:
    """Put the file `new` in the place of `old`, if the file there has the sha `over`. Returns whether it did.

    The file under the name `new` is of no use afterwards. `sha_of` must return something for every file.
    """
    ours = sha_of(*new)
    if sha_of(*old) != over:
        return False
    try:
        if not _exchange(new, old):
            os.rename(new[1], old[1], src_dir_fd=new[0], dst_dir_fd=old[0])
            return True
        failpoint("documents.after_exchange")
        if sha_of(*new) == over:
            return True
        _exchange(new, old)
        if sha_of(*new) != ours:
            _exchange(new, old)  # an editor saved again, over what we had put back: its text is the latest
    except FileNotFoundError:
        pass  # it was deleted or renamed at this moment
    return False


def _exchange(one: Place, other: Place) -> bool:
    """Let two files change places. False where that cannot be done."""
    function = _renameat2()
    if function is None:
        return False
    if function(one[0], os.fsencode(one[1]), other[0], os.fsencode(other[1]), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other[1])


@cache
def _renameat2() -> Any:
    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found
