"""Attacks on what is not a file: the network, other processes, the kernel. See `command_attack_table.py`."""

from collections.abc import Iterator

from tests.harness.command_attack import Attack, python


def network() -> Iterator[Attack]:
    for host in ("127.0.0.1", "0.0.0.0", "localhost", "127.1", "2130706433"):
        for code in (
            f"import socket; socket.create_connection(({host!r}, {{port}}), 2); print('ESCAPED')",
            f"import urllib.request as u; print(u.urlopen('http://{host}:{{port}}/', timeout=2)); print('ESCAPED')",
        ):
            yield Attack("network", python(code))
        yield Attack("network", ["node", "-e", f"require('net').connect({{port}}, {host!r}).on('error', () => 1)"])
        yield Attack(
            "network", ["perl", "-MIO::Socket", "-e", f"print 'ESCAPED' if IO::Socket::INET->new('{host}:{{port}}')"]
        )
        yield Attack("network", ["git", "ls-remote", f"http://{host}:{{port}}/x"])
        yield Attack("network", ["git", "ls-remote", f"git://{host}:{{port}}/x"])
        yield Attack(
            "network", ["npm", "ping", f"--registry=http://{host}:{{port}}/", "--offline=false", "--fetch-retries=0"]
        )
        yield Attack("network", ["awk", f'BEGIN {{ print "x" |& "/inet/tcp/0/{host}/{{port}}" }}'])
    udp = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'ESCAPED', ('127.0.0.1', {port}))"
    yield Attack("network", python(udp))
    for address in (
        "{socket}",
        "run.sock",
        "src/link.sock",
        "/var/run/docker.sock",
        "/run/systemd/private",
        "\\0{abstract}",
    ):
        for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"):
            code = f"import socket; s = socket.socket(socket.AF_UNIX, socket.{kind}); print('ESCAPED'); s.connect('{address}')"
            yield Attack("unix sockets", python(code))
    for family, type_, protocol in (
        (17, 3, 3),
        (2, 3, 1),
        (16, 3, 9),
        (16, 3, 12),
        (40, 1, 0),
        (38, 5, 0),
        (29, 3, 1),
        (1, 1, 0),
    ):
        code = f"import socket; socket.socket({family}, {type_}, {protocol}); print('ESCAPED')"
        yield Attack("odd sockets", python(code))
    for command in (
        ["git", "clone", "ext::sh -c 'echo x > {base}/outside/new'", "src/c"],
        ["git", "-c", "protocol.ext.allow=always", "clone", "ext::sh -c touch% {base}/outside/new", "src/c"],
        ["git", "clone", "--upload-pack", "touch {base}/outside/new", "file://{base}/outside", "src/c"],
        ["git", "clone", "{base}/outside", "src/c"],
        ["git", "-c", "core.pager=touch {base}/outside/new", "-p", "log"],
        ["git", "-c", "core.sshCommand=touch {base}/outside/new", "fetch", "ssh://x/y"],
        ["git", "-c", "core.fsmonitor=touch {base}/outside/new", "status"],
        ["git", "-c", "core.hooksPath=src/hooks", "commit", "--allow-empty", "-m", "x"],
        ["git", "config", "core.hooksPath", "src"],
        ["git", "config", "--global", "alias.x", "!sh"],
        ["git", "commit", "--allow-empty", "-m", "x"],
        ["git", "gc"],
        ["git", "checkout", "-b", "x"],
        ["git", "-C", "{base}/outside", "init"],
        ["git", "--git-dir={base}/outside/.git", "init"],
        ["git", "worktree", "add", "{base}/outside/tree"],
        ["git", "init", "src/sub"],
    ):
        yield Attack("git", command)


def processes() -> Iterator[Attack]:
    for code in (
        *(
            "os.kill({victim}, 9)",
            "os.kill({victim}, 15)",
            "os.kill({victim}, 19)",
            "os.killpg(os.getpgid({victim}), 9)",
        ),
        *("os.kill({harness}, 10)", "os.kill(os.getppid(), 9)", "os.kill(0, 0)"),
        "import signal; signal.pidfd_send_signal(os.pidfd_open({victim}), 9)",
        "import resource; resource.prlimit({victim}, resource.RLIMIT_NOFILE, (3, 3)); print('ESCAPED')",
        "os.setpriority(os.PRIO_PROCESS, {victim}, 19); print('ESCAPED')",
        "os.setpriority(os.PRIO_USER, os.getuid(), os.getpriority(os.PRIO_USER, os.getuid()))",
        "os.sched_setaffinity({victim}, [0]); print('ESCAPED')",
        "open('/proc/{victim}/mem', 'wb').write(b'x'); print('ESCAPED')",
        "open('/proc/{victim}/oom_score_adj', 'w').write('999'); print('ESCAPED')",
        "print(open('/proc/{victim}/environ').read())",
        "print(open('/proc/{harness}/environ').read())",
        "print(open('/proc/%d/environ' % os.getppid()).read())",
        "print(os.listdir('/proc/{harness}/fd'), 'ESCAPED')",
        "print(os.readlink('/proc/{harness}/cwd'), 'ESCAPED')",
        "import ctypes; print('ESCAPED' if ctypes.CDLL(None).ptrace(16, {victim}, 0, 0) == 0 else 'no')",
        "import fcntl; r, w = os.pipe(); fcntl.fcntl(r, 8, {victim}); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, 4, 0o20000); os.write(w, b'x')",
    ):
        yield Attack("signals and other processes", python(code))
    yield Attack("signals and other processes", ["node", "-e", "process.kill({victim}, 'SIGKILL')"])
    yield Attack("signals and other processes", ["perl", "-e", "kill 9, {victim}; kill 'URG', -1"])
    daemon = "\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    import signal, time\n    {}\n    time.sleep(300)\n  os._exit(0)"
    for within in (
        *("pass", "os.chdir('/')", "signal.signal(15, 1); signal.signal(1, 1)", "os.closerange(0, 1000)"),
        "[os.fork() for _ in range(5)]",
        "os.execvpe('sleep', ['x', '300'], {{}})",
        "os.setpgid(0, 0)",
        "os.nice(19)",
    ):
        yield Attack("outliving the call", python(daemon.replace("{}", within)))
    for command in (
        ["python3", "-c", "import subprocess as s; s.Popen(['sleep', '300'], start_new_session=True)"],
        ["python3", "-c", "import subprocess as s; s.Popen(['nohup', 'setsid', 'sleep', '300'])"],
        ["python3", "-c", "import subprocess as s; s.Popen('(sleep 300 &) &', shell=True)"],
        ["python3", "-c", "import subprocess as s; s.run('echo touch {base}/outside/new | at now', shell=True)"],
        [
            "python3",
            "-c",
            "import subprocess as s; s.run('echo \"* * * * * touch {base}/outside/new\" | crontab -', shell=True)",
        ],
        ["node", "-e", "require('child_process').spawn('sleep', ['300'], {{detached: true, stdio: 'ignore'}}).unref()"],
        ["perl", "-e", "use POSIX; if (!fork) {{ setsid; if (!fork) {{ sleep 300 }} exit }}"],
        ["make", "--eval=all:;setsid sleep 300 &"],
    ):
        yield Attack("outliving the call", command)
    for code in (
        "while True:\n  try: os.fork()\n  except OSError: pass",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(300,)).start()",
        "import subprocess\nwhile True: subprocess.Popen(['sleep', '300'], start_new_session=True)",
        "while True: print('x' * 1000000)",
        "while True: os.write(2, b'x' * 1000000)",
        "l = []\nwhile True: l.append(bytearray(10 ** 8))",
        (
            "import mmap\nl = []\nwhile True:\n"
            "  l.append(mmap.mmap(-1, 1 << 26)); l[-1][:] = b'x' * (1 << 26); l[-1].madvise(mmap.MADV_DONTNEED)"
        ),
        "while True: pass",
        "import time, signal\nfor n in range(1, 32):\n  try: signal.signal(n, 1)\n  except OSError: pass\ntime.sleep(300)",
    ):
        yield Attack(
            "without end", python(code), seconds=3.0, stopped="bytearray" not in code and "threading" not in code
        )
    yield Attack("without end", python("f = open('src/big', 'wb')\nwhile True: f.write(b'x' * 10 ** 7)"), seconds=5.0)
    yield Attack("without end", python("l = []\nwhile True: l.append(open('/dev/null'))"), seconds=5.0)
    yield Attack("without end", ["env", "sh", "-c", ":(){{ :|:& }};:"], seconds=3.0)


SYSCALLS = {
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "unshare": 272,
    "setns": 308,
    "ptrace": 101,
    "bpf": 321,
    "io_uring_setup": 425,
    "userfaultfd": 323,
    "perf_event_open": 298,
    "keyctl": 250,
    "add_key": 248,
    "request_key": 249,
    "kexec_load": 246,
    "init_module": 175,
    "finit_module": 313,
    "reboot": 169,
    "sethostname": 170,
    "settimeofday": 164,
    "swapon": 167,
    "acct": 163,
    "quotactl": 179,
    "open_by_handle_at": 304,
    "fsopen": 430,
    "open_tree": 428,
    "move_mount": 429,
    "fsmount": 432,
    "mount_setattr": 442,
    "iopl": 172,
    "ioperm": 173,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "fanotify_init": 300,
    "syslog": 103,
    "vhangup": 153,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "clock_settime": 227,
    "adjtimex": 159,
    "modify_ldt": 154,
    "x32 getpid": 0x40000027,
    "a call of the future": 999,
}


KNOBS = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"),
    *("/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/file-max", "/proc/irq/0/smp_affinity"),
    *("/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/vda"),
)


def kernel() -> Iterator[Attack]:
    for number in SYSCALLS.values():
        code = f"import ctypes; print('ESCAPED' if ctypes.CDLL(None).syscall({number}, 0x10000000, 1, 0, 0, 0, 0) >= 0 else 'no')"
        yield Attack("system calls", python(code))
    for code in (
        "import ctypes; print('ESCAPED' if ctypes.CDLL(None).syscall(56, 0x10000011, 0, 0, 0, 0) >= 0 else 'no')",
        "open('src/s', 'w'); os.chmod('src/s', 0o4755); print('ESCAPED')",
        "os.open('src/s', os.O_CREAT | os.O_WRONLY, 0o6755); print('ESCAPED' if os.stat('src/s').st_mode & 0o6000 else 'no')",
        (
            "import ctypes\nf = os.open('src', os.O_TMPFILE | os.O_RDWR, 0o6755)\n"
            "ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % f, -100, b'src/s', 0x400); print('ESCAPED')"
        ),
        "os.mknod('src/n', 0o60600, os.makedev(8, 0)); print('ESCAPED')",
        "os.mknod('src/n', 0o20600, os.makedev(1, 1)); print('ESCAPED')",
        *(f"os.open({path!r}, os.O_WRONLY); print('ESCAPED')" for path in KNOBS),
        "open('/dev/mem', 'rb').read(10); print('ESCAPED')",
        "open('/dev/sda', 'rb').read(10); print('ESCAPED')",
        "open('/dev/tty', 'w').write('x'); print('ESCAPED')",
        "os.setuid(1234); os.setuid(0); print('ESCAPED')",
        "print('ESCAPED' if [l for l in open('/proc/self/status') if l.startswith('CapEff') and int(l.split()[1], 16)] else 'no')",
        "print('ESCAPED' if 'API_KEY' in str(dict(os.environ)) else 'no')",
        "print('ESCAPED' if [f for f in range(3, 200) if os.path.exists('/proc/self/fd/%d' % f) and os.fstat(f)] else 'no')",
        'for f in range(3, 200):\n  try: os.write(f, b\'{{"code": 0, "stopped": "ESCAPED"}}\\n\'); print(\'ESCAPED\')\n  except OSError: pass',
    ):
        yield Attack("rights and devices", python(code))
    for name, value in (
        *(("LD_PRELOAD", "src/x.so"), ("LD_LIBRARY_PATH", "src"), ("PYTHONSTARTUP", "src/x.py"), ("PATH", "src:/bin")),
        *(
            ("NODE_OPTIONS", "--require ./src/x.js"),
            ("GIT_SSH_COMMAND", "touch {base}/outside/new"),
            ("BASH_ENV", "src/x"),
        ),
        *(("HOME", "{base}/home"), ("GIT_CONFIG_GLOBAL", "{base}/home/.gitconfig"), ("PERL5LIB", "src"), ("IFS", "/")),
    ):
        for command in (
            ["python3", "-c", "print(open('{outside}').read())"],
            ["git", "status"],
            ["ls", "{base}/outside"],
        ):
            yield Attack("environment", ["env", f"{name}={value}", *command])
    for program in (
        "/lib64/ld-linux-x86-64.so.2 /bin/rm",
        "/bin/rm -rf",
        "rm -rf",
        "/bin/dash -c 'rm -rf'",
        "sh -c 'rm -rf'",
    ):
        yield Attack("a program behind a program", ["env", *program.split(), "{outside}"])
        yield Attack(
            "a program behind a program", ["find", "src", "-maxdepth", "0", "-exec", *program.split(), "{outside}", ";"]
        )
        yield Attack(
            "a program behind a program",
            ["python3", "-c", f"import os; os.system('{program} {{outside}}')".replace("-c 'rm -rf'", "-c rm")],
        )
