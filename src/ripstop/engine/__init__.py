"""What moves runs: the engine, the worker, and the ports they need."""


# Those who carry commands out: agents, tools. They import kernel and runtime, and one another's types only.
