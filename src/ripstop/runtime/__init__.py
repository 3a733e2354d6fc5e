"""What moves runs: the engine, the worker, and the ports they need."""
