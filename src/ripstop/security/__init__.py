"""Which addresses and folders a process may use, and what must not leave it."""
