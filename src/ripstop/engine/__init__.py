"""What moves runs: the engine, the worker, and the ports of journals and performers. It knows no style and no store."""
