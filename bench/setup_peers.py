"""Makes `.venv-bench`, the virtual environment of the peers, from `bench/peers.txt`.

Nothing of the peers comes into the project's own environment. Does nothing when it is up to date.
"""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers.txt"
VENV = HERE.parent / ".venv-bench"


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def main() -> int:
    wanted = PEERS.read_text(encoding="utf-8")
    stamp = VENV / "peers-installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"Installing the peers into {VENV.name} (once, a minute or two) …", flush=True)
    venv.create(VENV, with_pip=True)
    install = [str(python_of(VENV)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    finished = subprocess.run([*install, "-r", str(PEERS)], check=False)
    if finished.returncode:
        print("The peers could not be installed; `--without-peers` measures the rest.", file=sys.stderr)
        return 1
    stamp.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
