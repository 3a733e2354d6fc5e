"""Which addresses and folders a process may use, which files only ripstop writes, and what must not leave it."""
