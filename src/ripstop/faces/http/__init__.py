"""The door of every HTTP face: who may come in, how much they may send, and how a server is run behind it."""
