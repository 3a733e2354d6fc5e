"""Attacks by commands, as a table: what an agent could try, and harmless commands that look like it.

In texts, `{outside}` is a file with a secret outside of the project, `{home}` one in the home folder, `{base}` the
folder of both, `{victim}` the id of a process outside, `{port}` a listener on loopback, `{socket}` one on a file,
`{abstract}` an abstract one. A script says `ESCAPED` if it got what it must not get.

An attack that gets through must not hurt the machine that it is tried on: what is deleted, moved or changed is always a
canary of our own; of the system's things it is tried only whether they could be opened, or changed to what they are.
"""

from collections.abc import Iterator

from tests.harness.command_attack import Attack, python
from tests.harness.command_attack_system import kernel, network, processes

PROTECTED = (
    *(".git/hooks/pre-commit", ".git/config", ".ripstop/journal.db", ".cowork/artifacts/idea.md", "ripstop.toml"),
    *("workflows/a/workflow.yaml", "roles/x.md", ".inbox/x", ".env", "vendor/repo.git/config"),
)
OUTSIDE = ("{outside}", "{home}", "{base}/outside/deep/x.txt")
SYSTEM = (
    "{base}/outside/new",
    "{base}/home/new",
    "/etc/ripstop-attack",
    "/tmp/ripstop-attack",
    "/usr/local/bin/ripstop-attack",
    "/dev/shm/ripstop-attack",
)
"""Files that are not there."""
TARGETS = (*OUTSIDE, *PROTECTED)

WRITES = {
    "write": "open(t, 'w').write('x')",
    "append": "open(t, 'a').write('x')",
    "truncate": "os.truncate(t, 0)",
    "open O_TRUNC": "os.open(t, os.O_RDONLY | os.O_TRUNC)",
    "unlink": "os.unlink(t)",
    "rename away": "os.rename(t, 'src/got')",
    "replace": "open('src/x', 'w').write('x'); os.replace('src/x', t)",
    "rename the folder": "os.rename(os.path.dirname(t) or t, 'src/moved')",
    "remove the tree": "shutil.rmtree(os.path.dirname(t)) if os.path.dirname(t) else os.unlink(t)",
    "chmod": "os.chmod(t, 0o777)",
    "fchmod": "os.fchmod(os.open(t, os.O_RDONLY), 0o777)",
    "chown": "os.chown(t, 1234, 1234)",
    "utime": "os.utime(t, (1, 1))",
    "xattr": "os.setxattr(t, 'user.x', b'x')",
    "link and write": "os.link(t, 'src/hard'); open('src/hard', 'w').write('x')",
    "symlink and write": "os.symlink(os.path.abspath(t), 'src/soft'); open('src/soft', 'w').write('x')",
    "symlink over": "os.symlink('/', 'src/l'); os.replace('src/l', t)",
    "mkdir": "if os.path.lexists(t): os.unlink(t)\nos.mkdir(t)",
    "fifo": "if os.path.lexists(t): os.unlink(t)\nos.mkfifo(t)",
    "through /proc/self/root": "open('/proc/self/root' + os.path.abspath(t), 'w').write('x')",
    "through /proc/1/root": "open('/proc/1/root' + os.path.abspath(t), 'w').write('x')",
    "through /proc/PPID/root": "open('/proc/%d/root' % os.getppid() + os.path.abspath(t), 'w').write('x')",
    "through a descriptor": "os.open(os.path.abspath(t)[1:], os.O_WRONLY | os.O_CREAT, dir_fd=os.open('/', os.O_RDONLY))",
    "by a swapped link": (
        "import threading\nopen('src/f', 'w')\n"
        "def swap():\n  for _ in range(300):\n    os.symlink(os.path.abspath(t), 'src/l'); os.replace('src/l', 'src/f')\n"
        "threading.Thread(target=swap, daemon=True).start()\n"
        "for _ in range(300):\n  try: open('src/f', 'a').write('x')\n  except OSError: pass"
    ),
}
CREATIONS = (
    "write",
    "append",
    "replace",
    "symlink over",
    "mkdir",
    "fifo",
    "through /proc/self/root",
    "through /proc/1/root",
)
READS = {
    "read": "print(open(t).read())",
    "mmap": "import mmap; f = open(t, 'rb'); print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:])",
    "by link": "os.symlink(os.path.abspath(t), 'src/soft'); print(open('src/soft').read())",
    "by hard link": "os.link(t, 'src/hard'); print(open('src/hard').read())",
    "by /proc/self/root": "print(open('/proc/self/root' + os.path.abspath(t)).read())",
    "by /proc/1/root": "print(open('/proc/1/root' + os.path.abspath(t)).read())",
    "by /proc/PPID/root": "print(open('/proc/%d/root' % os.getppid() + os.path.abspath(t)).read())",
    "by copy": "shutil.copyfile(t, 'src/copy'); print(open('src/copy').read())",
    "by sendfile": "print(os.sendfile(1, os.open(t, os.O_RDONLY), 0, 1000))",
    "by cat": "import subprocess; print(subprocess.run(['cat', t], capture_output=True).stdout)",
}
SECRET_FILES = (
    "{outside}",
    "{home}",
    ".ripstop/journal.db",
    ".env",
    "conf/.env.local",
    "conf/hard-link",
    "/etc/shadow",
)


def files() -> Iterator[Attack]:
    for target in TARGETS:
        for action in WRITES.values():
            yield Attack("write or delete with python", python(f"t = {target!r}\n{action}"))
    for target in SYSTEM:
        for action in CREATIONS:
            yield Attack("write or delete with python", python(f"t = {target!r}\n{WRITES[action]}"))
    for target in SECRET_FILES:
        for action in READS.values():
            yield Attack("read with python", python(f"t = {target!r}\n{action}"))
    node = (
        "fs.writeFileSync(t, 'x')",
        "fs.unlinkSync(t)",
        "fs.renameSync(t, 'src/got')",
        "fs.chmodSync(t, 0o777)",
        "console.log(fs.readFileSync(t, 'utf8'))",
        "fs.rmSync(t, {recursive: true, force: true})",
    )
    perl = ("open(F,'>',$t); print F 'x'", "unlink $t", "rename $t,'src/got'", "chmod 0777,$t", "open(F,$t); print <F>")
    for target in (
        "{outside}",
        "{home}",
        "{base}/outside/deep/x.txt",
        "/etc/ripstop-attack",
        ".git/config",
        ".ripstop/journal.db",
    ):
        for code in node:
            yield Attack("node", ["node", "-e", f"const fs = require('fs'), t = {target!r}; {code}"])
        for code in perl:
            yield Attack("perl", ["perl", "-e", f"$t = '{target}'; {code}"])
        yield from _tools(target)


def _tools(target: str) -> Iterator[Attack]:
    for command in (
        ["cat", target],
        ["cp", "src/a.txt", target],
        ["cp", target, "src/got"],
        ["mv", target, "src/got"],
        ["mv", "src/a.txt", target],
        ["touch", "-d", "2001-01-01", target],
        ["sed", "-i", "s/./x/g", target],
        ["sed", "-n", f"w {target}", "src/a.txt"],
        ["awk", f'BEGIN {{ print "x" > "{target}" }}'],
        ["awk", f'BEGIN {{ while ((getline line < "{target}") > 0) print line }}'],
        ["find", target, "-delete"],
        ["find", "src", "-name", "a.txt", "-exec", "cp", "{{}}", target, ";"],
        ["find", "src", "-name", "a.txt", "-fprintf", target, "x"],
        ["tar", "-cf", target, "src"],
        ["tar", "-cf", "/dev/null", "src", "--checkpoint=1", f"--checkpoint-action=exec=cp src/a.txt {target}"],
        ["tar", "-cf", "-", target],
        ["sort", "-o", target, "src/a.txt"],
        ["git", "diff", "--no-index", f"--output={target}", "src/a.txt", "src/b.txt"],
        ["git", "-c", "alias.x=!rm -rf {base}/outside", "x"],
        ["env", "sh", "-c", f"echo x > {target}"],
        ["env", "-S", f"rm -rf {target}"],
        ["make", "-f", "-", f"--eval=all:;echo x > {target}"],
    ):
        yield Attack("other programs", command)


NAMES = (
    *("rm", "rmdir", "unlink", "shred", "kill", "pkill", "killall", "shutdown", "reboot", "halt", "poweroff", "dd"),
    *("mkfs", "mkfs.ext4", "mkswap", "fdisk", "sudo", "su", "doas", "sh", "bash", "dash", "zsh", "busybox", "chroot"),
    *("mount", "umount", "curl", "wget", "nc", "ssh", "scp", "nohup", "setsid", "at", "crontab", "systemctl", "docker"),
    *("chown", "chattr", "iptables", "insmod", "passwd", "useradd", "eval", "exec", "xargs", "tee", "ln", "chmod"),
)


def refused() -> Iterator[Attack]:
    for name in NAMES:
        yield Attack("refused programs", [name, "--version"], refused=True)
    for spelling in (
        *(
            "/bin/rm",
            "/usr/bin/rm",
            "//bin/rm",
            "./rm",
            "../../bin/rm",
            "bin/rm",
            "RM",
            "Rm",
            " rm",
            "rm ",
            "\trm",
            "rm\n",
        ),
        *(
            "r\u200bm",
            "ｒｍ",
            "rm;ls",
            "rm&&ls",
            "$(rm)",
            "`rm`",
            "ls;rm",
            "ls|rm",
            "\\rm",
            "'rm'",
            '"rm"',
            "rm\0",
            "-c",
        ),
        *("~/x", "~root/x", "$HOME/x", "..", ".", "/", "-", "--", "C:\\x", "file:///bin/rm", ".venv/bin/../../x"),
        *(
            ".venv/bin/rm",
            "node_modules/.bin/sh",
            "/proc/self/exe",
            "/lib64/ld-linux-x86-64.so.2",
            "sub/../.venv/bin/x",
        ),
    ):
        yield Attack("refused spellings", [spelling, "--version"], refused=True)
    for text in ("rm -rf {outside}", "ls; rm -rf {outside}", "ls && rm {outside}", "$(rm {outside})", "python3 -c 'x'"):
        yield Attack("a text instead of a list", text, refused=True)
    for folder in (
        *("..", "../", "../..", "src/../..", "./..", "src/../../outside", "/", "/etc", "{base}/outside", "~", "~root"),
        *("..\\..", "%2e%2e", "..%2f..", "%2e%2e%2f", "\u2025", "．．", "․․", "..;/", "src/..\0", "\0", "\n", "..\n"),
        *(
            "c:\\",
            "C:/",
            "link",
            "src/link",
            ".git",
            ".GIT",
            ".git/hooks",
            ".ripstop",
            "git~1",
            ".git.",
            ".env",
            "x" * 2000,
        ),
        *(
            "/".join(["a"] * 50),
            "src//..//..",
            "....//",
            "..././",
            "file:///",
            "\\\\host\\x",
            "src/\u202e..",
            "nothing",
        ),
    ):
        yield Attack("folders", ["ls"], folder=folder, refused=True)
    yield Attack("long arguments", ["ls", "x" * 5_000_000], refused=True)
    yield Attack("long arguments", ["ls", *["x"] * 100_000], refused=True)
    yield Attack("long arguments", ["ls", "\0"], refused=True)
    yield Attack("long arguments", ["ls", "\ud800"], refused=True)
    yield Attack("long arguments", [], refused=True)
    yield Attack("long arguments", [""], refused=True)


MADE_REPOSITORIES = (
    "os.makedirs('src/x/objects'); os.makedirs('src/x/refs'); open('src/x/HEAD', 'w').write('ref: refs/heads/x')",
    "os.makedirs('src/x/refs'); os.symlink('refs', 'src/x/objects'); os.symlink('refs/heads/x', 'src/x/HEAD')",
    (
        "os.makedirs('src/i/objects'); os.makedirs('src/i/refs'); os.makedirs('src/x')\n"
        "open('src/x/HEAD', 'w').write('ref: refs/heads/x'); open('src/x/commondir', 'w').write('../i')"
    ),
    (
        "os.makedirs('src/x'); open('src/x/HEAD', 'w').write('ref: refs/heads/x')\n"
        "open('src/x/commondir', 'w').write('../../vendor/repo.git')"
    ),
    "os.makedirs('src/x'); open('src/x/.git', 'w').write('gitdir: ../../vendor/repo.git')",
    "shutil.copytree('vendor/repo.git', 'src/x')",
    "shutil.copytree('.git', 'src/x')",
    "open('vendor/repo.git/hooks/post-update', 'w').write('x')",
    "os.unlink('vendor/repo.git/HEAD')",
)


def repositories() -> Iterator[Attack]:
    for code in MADE_REPOSITORIES:
        yield Attack("repositories", python(code))


PACKAGE = '{{"name": "x", "version": "1.0.0", "scripts": {{"{name}": "{script}"}}}}'
SCRIPTS = (
    "rm -rf {base}/outside",
    "echo x > {outside}",
    "cat {outside}",
    "touch .git/hooks/new",
    "echo x > ripstop.toml",
)


def builds() -> Iterator[Attack]:
    for script in SCRIPTS:
        for name, command in (
            ("format", ["npm", "run", "format"]),
            ("preformat", ["npm", "run", "format"]),
            ("test", ["npm", "test"]),
            ("preinstall", ["npm", "install"]),
            ("prepare", ["npm", "pack", "--dry-run"]),
        ):
            package = PACKAGE.replace("{name}", name).replace("{script}", script)
            yield Attack("npm", command, files={"package.json": package})
        yield Attack("make", ["make"], files={"Makefile": f"all:\n\t{script}\n"})
        yield Attack("make", ["make", "-f", "src/m"], files={"src/m": f"x := $(shell {script})\nall:\n"})
        yield Attack("npx", ["npx", "--no-install", "-c", script])
        yield Attack("python files", ["python3", "setup.py"], files={"setup.py": f"import os; os.system({script!r})"})
        yield Attack(
            "python files", ["python3", "-m", "unittest"], files={"test_x.py": f"import os; os.system({script!r})"}
        )


def harmless() -> Iterator[Attack]:
    package = PACKAGE.replace("{name}", "format").replace("{script}", "echo formatted")
    for command, works, brought in (
        (["npm", "run", "format"], "formatted", {"package.json": package}),
        (["python3", "-c", "print(1)"], "1", {}),
        (["python3", "--version"], "Python 3", {}),
        (["node", "-e", "console.log(6 * 7)"], "42", {}),
        (["git", "status", "--short"], "", {}),
        (["git", "log", "--oneline"], "first", {}),
        (["git", "diff", "HEAD"], "", {}),
        (["git", "log", "--grep", "rm -rf"], "", {}),
        (["cat", "a..b.txt"], "dots", {"a..b.txt": "dots"}),
        (["cat", "src/a.txt"], "text", {}),
        (["ls", "-la", "src"], "a.txt", {}),
        (["grep", "-rn", "rm -rf /", "src/rm.txt"], "rm -rf /", {"src/rm.txt": "never rm -rf /"}),
        (["grep", "-c", "kill", "src/kill.txt"], "1", {"src/kill.txt": "kill"}),
        (["find", "src", "-name", "*.txt"], "src/a.txt", {}),
        (["make"], "built", {"Makefile": "all:\n\t@echo built > src/out && cat src/out\n"}),
        (["awk", "{{ print $1 }}", "src/a.txt"], "text", {}),
        (["sed", "s/text/word/", "src/a.txt"], "word", {}),
        (["sort", "src/a.txt"], "text", {}),
        (["perl", "-e", "print 6 * 7"], "42", {}),
        (["env"], "PATH=", {}),
        (["echo", "$(rm -rf /)", "; kill 1"], "$(rm -rf /) ; kill 1", {}),
        (
            ["python3", "-m", "unittest", "-q", "src.test_a"],
            "OK",
            {"src/test_a.py": "import unittest\nclass T(unittest.TestCase):\n  def test(self): pass\n"},
        ),
        (
            ["python3", "-c", "open('src/new', 'w').write('x'); import os; os.unlink('src/new'); print('done')"],
            "done",
            {},
        ),
        (
            ["python3", "-c", "import subprocess; print(subprocess.run(['ls', 'src'], capture_output=True).stdout)"],
            "a.txt",
            {},
        ),
        (["python3", "-c", "import tempfile; tempfile.TemporaryFile().write(b'x'); print('done')"], "done", {}),
        (["python3", "-c", "import os, signal; os.kill(os.getpid(), 0); print('done')"], "done", {}),
        (
            [
                "python3",
                "-c",
                "import multiprocessing as m; p = m.get_context('fork').Process(target=print, args=(7,)); p.start(); p.join()",
            ],
            "7",
            {},
        ),
        (
            ["python3", "-c", "import threading; t = threading.Thread(target=print, args=(7,)); t.start(); t.join()"],
            "7",
            {},
        ),
        (["node", "-e", "console.log(require('child_process').execFileSync('ls', ['src']).toString())"], "a.txt", {}),
        (["cat", ".cowork/artifacts/idea.md"], "idea", {}),
        (["node_modules/.bin/hello"], "hello", {}),
    ):
        yield Attack("harmless", command, files=brought, works=works or " ")


def attacks() -> list[Attack]:
    """All of them, each one once."""
    every = [*harmless(), *refused(), *files(), *network(), *processes(), *kernel(), *builds(), *repositories()]
    return list({repr((one.command, one.folder, one.files)): one for one in every}.values())
