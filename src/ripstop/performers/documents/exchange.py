"""Replacing a file only if it still is what it was, which `rename` cannot do: it does not look at what it overwrites.

The two files change places (`renameat2` with `RENAME_EXCHANGE`), and only then is what came out looked at. If it is
not what was expected, somebody has saved in that moment, and they change back. Where the system or the file system
cannot exchange, there is a plain rename right after a last look, and a window of microseconds.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any

_EXCHANGE = 2
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def replace_if(above: int, new: str, name: str, over: str, sha_of: Callable[[str], str]) -> bool:
    """Put the file `new` in the place of `name`, if what stands there has the sha `over`. Returns whether it did.

    What stands under the name `new` afterwards is of no use to anybody.
    """
    ours = sha_of(new)
    if sha_of(name) != over:
        return False
    try:
        if not _exchange(above, new, name):
            os.rename(new, name, src_dir_fd=above, dst_dir_fd=above)
            return True
        if sha_of(new) == over:
            return True
        _exchange(above, new, name)
        if sha_of(new) != ours:
            _exchange(above, new, name)  # somebody has saved once more, over what we had put back: theirs is the last
    except FileNotFoundError:
        pass  # somebody has deleted or renamed it in this moment
    return False


def _exchange(above: int, one: str, other: str) -> bool:
    """Let two files change places. False where that cannot be done."""
    function = _renameat2()
    if function is None:
        return False
    if function(above, os.fsencode(one), above, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other)


@cache
def _renameat2() -> Any:
    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found
