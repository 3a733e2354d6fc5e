"""`ripstop.toml`: what it may say, and what holds where it says nothing."""
