"""However a command is ended, it ends in order: no traceback, the right exit code, and how to resume."""

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.walks.test_command_line import HAIKU, SCRIPT, ripstop, succeed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal; false before it is there.

    Between fork and exec it is a copy of this process, with whatever handlers that has.
    """
    try:
        if Path(f"/proc/{pid}/cmdline").read_bytes() in (b"", Path("/proc/self/cmdline").read_bytes()):
            return False
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1]
    return bool(int(caught, 16) >> (number - 1) & 1)


class OnTerminal:
    """A command on a terminal of its own."""

    def __init__(
        self, *arguments: str, cwd: Path, python: tuple[str, ...] = ("-m", "ripstop"), wait_for_handlers: bool = True
    ) -> None:
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(cwd)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup would pass it on as ignored
            os.execv(sys.executable, [sys.executable, *python, *arguments])
        modes = termios.tcgetattr(self.terminal)
        modes[3] |= termios.NOFLSH  # or Ctrl-C throws away what was shown and not read yet
        termios.tcsetattr(self.terminal, termios.TCSANOW, modes)
        self.shown = b""
        while wait_for_handlers and not catches(self.pid, signal.SIGTERM):  # Python itself is starting
            time.sleep(0.001)

    def read(self, until: bytes = b"") -> bytes:
        """Read until a text was shown, or to the end."""
        while not until or until not in self.shown:
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not piece:
                break
            self.shown += piece
        return self.shown

    def close(self) -> None:
        os.close(self.terminal)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def slow_script(folder: Path, delay: float = 600) -> str:
    script = folder / "slow.jsonl"
    script.write_text(json.dumps({"agent": "poet", "reply": "never", "delay": delay}) + "\n")
    return f"script:{script}"


def three_interruptions(tmp_path: Path, after: float, gap: float = 0.05) -> None:
    run = OnTerminal("run", str(HAIKU), "--model", slow_script(tmp_path), cwd=tmp_path)
    time.sleep(after)
    for _ in range(3):
        os.write(run.terminal, b"\x03")  # as the keyboard does it
        time.sleep(gap)
    shown = run.read()
    code = run.wait()
    run.close()
    assert code == 130, shown
    assert b"Traceback" not in shown and b"Exception" not in shown, shown
    assert shown.count(b"Nothing is lost") == 1, shown


@pytest.mark.parametrize("after", [0.0, 1.0])
def test_three_quick_interruptions_leave_in_order(tmp_path: Path, after: float) -> None:
    three_interruptions(tmp_path, after)


@pytest.mark.long
@pytest.mark.parametrize("gap", [0.0, 0.005, 0.05])
def test_three_interruptions_at_any_moment_leave_in_order(tmp_path: Path, gap: float) -> None:
    for step in range(12):
        three_interruptions(tmp_path, step * 0.09, gap)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_second_signal_ends_the_process_at_once(tmp_path: Path, number: signal.Signals, code: int) -> None:
    run = OnTerminal("run", str(HAIKU), "--model", slow_script(tmp_path), cwd=tmp_path)
    run.read(until=b"poet")
    os.kill(run.pid, number)
    run.read(until=b"stopping")  # it has seen the first: two at once would be one
    os.kill(run.pid, number)
    shown = run.read()
    assert run.wait() == code, shown
    run.close()
    assert b"Interrupted. Nothing is lost; resume with:  ripstop resume haiku-" in shown
    assert b"Traceback" not in shown


@pytest.mark.long
def test_closing_the_terminal_stops_the_run_in_order(tmp_path: Path) -> None:
    run = OnTerminal("run", str(HAIKU), "--model", slow_script(tmp_path), cwd=tmp_path)
    run.read(until=b"poet")
    run.close()
    assert run.wait() == 129
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    assert listed["status"] == "interrupted"
    assert not list((tmp_path / ".ripstop").glob("*-worker-*")), "it left in order"


def test_a_run_goes_on_when_its_reader_goes_away(tmp_path: Path) -> None:
    command = f"{sys.executable} -m ripstop run {HAIKU} --model {SCRIPT} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, "the exit code of the run"
    assert done.stdout.startswith("haiku-") and done.stdout.count("\n") == 1
    assert not done.stderr
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    assert listed["status"] == "completed"


def test_a_looking_command_ends_when_its_reader_goes_away(tmp_path: Path) -> None:
    succeed("run", str(HAIKU), "--model", SCRIPT, cwd=tmp_path)
    (listed,) = json.loads(succeed("runs", "--json", cwd=tmp_path))
    command = f"{sys.executable} -m ripstop log {listed['run']} --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == ("{", "")


def test_an_interruption_with_json_is_a_document(tmp_path: Path) -> None:
    arguments = ["run", str(HAIKU), "--model", slow_script(tmp_path), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ripstop", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not catches(process.pid, signal.SIGTERM):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)  # it has hardly begun
    out, err = process.communicate(timeout=30)
    told: dict[str, Any] = json.loads(out)
    assert (process.returncode, b"Nothing is lost" in err, b"Traceback" in err) == (130, True, False)
    assert told.get("kind", "interrupted") == "interrupted"


def test_the_name_of_a_run_is_shown_before_its_first_turn(tmp_path: Path) -> None:
    done = ripstop("run", str(HAIKU), "--model", SCRIPT, cwd=tmp_path)
    assert done.stderr.startswith("haiku-"), done.stderr


ASKING = """
from ripstop.faces.cli.main import use_output
from ripstop.faces.cli.terminal import confirm, console_for, live_line, say, text_of
use_output()
with live_line(console_for(stderr=True), text_of("starting")):
    agreed = confirm("use \\x1b[8mit?")
say("agreed" if agreed else "declined")
"""


@pytest.mark.parametrize(("typed", "said"), [(b"yes\n", b"agreed"), (b"what\nn\n", b"declined"), (b"\n", b"declined")])
def test_a_question_hides_the_live_line(tmp_path: Path, typed: bytes, said: bytes) -> None:
    asking = OnTerminal(cwd=tmp_path, python=("-c", ASKING), wait_for_handlers=False)
    shown = asking.read(until=b"use \\x1b[8mit? [y/N]: ")
    assert b"[y/N]: " in shown
    os.write(asking.terminal, typed)
    assert said in asking.read()
    assert asking.wait() == 0
    asking.close()
