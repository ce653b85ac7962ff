"""Commands about the system, its processes and time.

Specified by: busybox coreutils, procps and miscutils (date, env, id, kill, ps, sleep, timeout, uname, which, xargs …).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from fakekube.apis.core.pods.sysctls import normalize_name
from fakekube.nodes.runtime.program import Command, Program, Usage, options
from fakekube.nodes.runtime.scheduling import SIGNAL_NAMES, SIGNALS, SIGTERM, Task, checkpoint, sleep, wait_until

_KERNEL: Final = "6.8.0"
#: The process that a container starts with; the kernel only delivers the signals to it that it handles.
_INIT: Final = 1
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


async def _date(program: Program) -> int:
    flags, operands = options(program, "ud:r:Is:R", ["utc", "date="], aliases={"utc": "u", "date": "d"})
    now = program.task.scheduler.now()
    given = flags.get("d", next((one for one in operands if not one.startswith("+")), None))
    if given is not None:
        try:
            now = datetime.fromtimestamp(float(given[1:]), UTC) if given.startswith("@") else datetime.fromisoformat(given)
        except ValueError:
            return await program.complain(f"invalid date '{given}'")
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
    unknown = next((one for one in operands if not one.startswith("+")), None)
    if unknown is not None:
        return await program.complain(f"invalid date '{unknown}'")
    pattern = next((one[1:] for one in operands), None)
    if pattern is None:
        pattern = "%Y-%m-%d" if "I" in flags else "%a, %d %b %Y %H:%M:%S +0000" if "R" in flags else "%a %b %e %H:%M:%S UTC %Y"
    known = {"%s": str(int(now.timestamp())), "%N": f"{now.microsecond * 1000:09}", "%n": "\n", "%t": "\t"}
    text = re.sub(r"%.", lambda found: known.get(found[0]) or now.strftime(found[0]), pattern)
    await program.write(f"{text}\n")
    return 0


async def _env(program: Program) -> int:
    args, env = list(program.args), dict(program.env)
    while args and args[0].startswith("-"):
        flag = args.pop(0)
        if flag in ("-i", "-"):
            env = {}
        elif flag == "-u" and args:
            env.pop(args.pop(0), None)
        else:
            raise Usage(f"unrecognized option: {flag.lstrip('-')}")
    while args and "=" in args[0]:
        name, _, value = args.pop(0).partition("=")
        env[name] = value
    if args:
        return await program.run(args, env=env)
    await program.write("".join(f"{name}={value}\n" for name, value in env.items()))
    return 0


async def _printenv(program: Program) -> int:
    if not program.args:
        return await _env(program)
    code = 0
    for name in program.args:
        if name in program.env:
            await program.write(f"{program.env[name]}\n")
        else:
            code = 1
    return code


async def _sysctl(program: Program) -> int:
    flags, names = options(program, "anewqN")
    given = {one["name"]: one["value"] for one in (program.host.pod["spec"].get("securityContext") or {}).get("sysctls") or ()}
    known = {**_SYSCTLS, **{normalize_name(name): value for name, value in given.items()}}
    code = 0
    for name in sorted(known) if "a" in flags else [normalize_name(one) for one in names]:
        if name in known:
            await program.write(f"{known[name]}\n" if "n" in flags else f"{name} = {known[name]}\n")
        else:
            code = await program.complain(f"error: '{name}' is an unknown key")
    return code


#: The kernel parameters of a pod that has set none.
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": "0",
    "net.ipv4.ip_local_port_range": "32768\t60999",
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "0\t2147483647",
    "net.ipv4.tcp_syncookies": "1",
}


async def _pwd(program: Program) -> int:
    await program.write(f"{program.cwd}\n")
    return 0


async def _hostname(program: Program) -> int:
    flags, _ = options(program, "ifsd")
    await program.write(f"{program.host.network.own_address() if 'i' in flags else program.host.hostname}\n")
    return 0


async def _whoami(program: Program) -> int:
    if program.host.uid:
        return await program.complain(f"unknown uid {program.host.uid}")
    await program.write("root\n")
    return 0


async def _id(program: Program) -> int:
    flags, _ = options(program, "ugnGr")
    uid, gid = program.host.uid, program.host.gid
    names = "n" in flags
    if "u" in flags:
        await program.write("root\n" if names and not uid else f"{uid}\n")
    elif "G" in flags and not names:
        await program.write(" ".join(map(str, program.host.groups)) + "\n")
    elif "g" in flags or "G" in flags:
        await program.write("root\n" if names and not gid else f"{gid}\n")
    else:
        name, group = "(root)" if not uid else "", "(root)" if not gid else ""
        await program.write(f"uid={uid}{name} gid={gid}{group}" + (f" groups={gid}{group}\n" if not uid else "\n"))
    return 0


async def _groups(program: Program) -> int:
    await program.write("root\n" if not program.host.gid else f"{program.host.gid}\n")
    return 0


async def _uname(program: Program) -> int:
    flags, _ = options(program, "asnrvmpio")
    values = {"s": "Linux", "n": program.host.hostname, "r": _KERNEL, "v": "#1 SMP", "m": "x86_64", "o": "GNU/Linux"}
    wanted = list(values) if "a" in flags else [one for one in values if one in flags] or ["s"]
    await program.write(" ".join(values[one] for one in wanted) + "\n")
    return 0


async def _arch(program: Program) -> int:
    await program.write("x86_64\n")
    return 0


def _seconds(text: str) -> float:
    try:
        return float(text.rstrip("smhd")) * _UNITS.get(text[-1:], 1.0)
    except ValueError:
        if text in ("infinity", "inf"):
            return 1e9
        raise Usage(f"invalid number '{text}'") from None


async def _sleep(program: Program) -> int:
    if not program.args:
        raise Usage("usage: sleep [N]...")
    await sleep(sum(_seconds(arg) for arg in program.args))
    return 0


async def _usleep(program: Program) -> int:
    await sleep(float(program.args[0] if program.args else "0") / 1e6)
    return 0


async def _timeout(program: Program) -> int:
    flags, args = options(program, "s:k:", mixed=False)
    if len(args) < 2:
        raise Usage("usage: timeout [-s SIG] SECS PROG ARGS")
    scheduler, parent = program.task.scheduler, program.task

    def start(coroutine: object, name: str) -> Task:
        return scheduler.start(coroutine, name, program.host.next_pid(), parent)  # type: ignore[arg-type]

    async def wait() -> int:
        await sleep(_seconds(args[0]))
        return 0

    child, alarm = start(program.run(args[1:]), args[1]), start(wait(), "timeout")
    await wait_until(lambda: True if child.exit_code is not None or alarm.exit_code is not None else None, child, alarm)
    if child.exit_code is not None:
        alarm.kill()
        return child.exit_code
    child.kill(_parse_signal(flags.get("s", "TERM")))
    await child.join()
    return 143


def _parse_signal(text: str) -> int:
    """Returns the number of a signal, which is given by name or number; 0 only asks for the process. Raises Usage."""
    name = text.upper().removeprefix("SIG")
    if name.isdigit():
        return int(name)
    if name not in SIGNALS:
        raise Usage(f"bad signal name '{text}'")
    return SIGNALS[name]


async def _list_signals(program: Program, wanted: Sequence[str]) -> int:
    """Lists all signals, or writes the numbers of names, and the names of numbers (or of the status of a killed program)."""
    if not wanted:
        await program.write("".join(f"{number:2}) {name}\n" for number, name in enumerate(SIGNAL_NAMES) if number))
    for one in wanted:
        name = one.upper().removeprefix("SIG")
        if name in SIGNALS:
            await program.write(f"{SIGNALS[name]}\n")
        elif one.isdigit() and int(one) % 128 < len(SIGNAL_NAMES):
            await program.write(f"{SIGNAL_NAMES[int(one) % 128]}\n")
        else:
            return await program.complain(f"unknown signal '{one}'")
    return 0


async def _kill(program: Program) -> int:
    args, signal = list(program.args), SIGTERM
    if args[:1] == ["-l"]:
        return await _list_signals(program, args[1:])
    if args and args[0].startswith("-") and len(args[0]) > 1:
        flag = args.pop(0)
        signal = _parse_signal(args.pop(0) if flag == "-s" and args else flag[1:])
    code = 0
    for arg in args:
        task = program.host.processes.tasks.get(int(arg)) if arg.isdigit() else None
        if task is None or task.exit_code is not None:
            code = await program.complain(f"can't kill pid {arg}: No such process")
        elif signal in task.caught:
            task.deliver(signal)
        elif signal and task.pid != _INIT:
            task.kill(signal)
    await checkpoint()  # the command may have killed itself
    return code


#: The user of the process of a sandbox.
_PAUSE_USER: Final = "65535"


async def _ps(program: Program) -> int:
    rows = ["PID   USER     TIME  COMMAND\n"]
    user = "root" if not program.host.uid else str(program.host.uid)
    if program.host.processes.has_pause:
        rows.append(f"    1 {_PAUSE_USER:8}  0:00 /pause\n")
    for pid, task in sorted(program.host.processes.tasks.items()):
        if task.exit_code is None:
            rows.append(f"{pid:5} {user:8}  0:00 {task.name}\n")
    await program.write("".join(rows))
    return 0


async def _top(program: Program) -> int:
    await program.write("Mem: 1024000K used, 1024000K free\nCPU:   0% usr   0% sys   0% nic 100% idle\n")
    return await _ps(program)


async def _uptime(program: Program) -> int:
    now, up = program.task.scheduler.now(), int(program.host.started_seconds())
    hours, minutes = divmod(up // 60, 60)
    lasted = f"{hours:2}:{minutes:02}" if hours else f"{minutes} min"
    await program.write(f" {now:%H:%M:%S} up {lasted},  0 users,  load average: 0.00, 0.00, 0.00\n")
    return 0


async def _run_free(program: Program) -> int:
    flags, _ = options(program, "mkgbh")
    total = program.host.memory_limit // (1024**2 if "m" in flags else 1024)
    head = "              total        used        free      shared  buff/cache   available\n"
    await program.write(f"{head}Mem:   {total:12}{total // 10:12}{total - total // 10:12}{0:12}{0:12}{total - total // 10:12}\n")
    return 0


async def _nproc(program: Program) -> int:
    await program.write("4\n")
    return 0


async def _run_which(program: Program) -> int:
    from fakekube.nodes.runtime.shell.state import find_program

    code = 0
    for name in program.args:
        found = find_program(name, program.files, program.env.get("PATH", ""), program.cwd)
        if found is None:
            code = 1
        else:
            await program.write(f"{found}\n")
    return code


async def _tty(program: Program) -> int:
    terminal = program.stdin.is_terminal
    await program.write("/dev/pts/0\n" if terminal else "not a tty\n")
    return int(not terminal)


async def _stty(program: Program) -> int:
    if not program.stdin.is_terminal:
        return await program.complain("standard input: Not a tty")
    width, height = getattr(program.stdin, "size", (80, 24))
    if program.args[:1] == ["size"]:
        await program.write(f"{height} {width}\n")
    elif not program.args or program.args[:1] == ["-a"]:
        await program.write(f"speed 38400 baud; rows {height}; columns {width};\n")
    return 0


async def _clear(program: Program) -> int:
    await program.write("\x1b[H\x1b[J")
    return 0


async def _do_nothing(program: Program) -> int:
    return 0


async def _time(program: Program) -> int:
    before = program.task.scheduler.time
    code = await program.run(program.args) if program.args else 0
    took = program.task.scheduler.time - before
    minutes, seconds = divmod(took, 60)
    await program.stderr.write(f"real\t{int(minutes)}m {seconds:.2f}s\nuser\t0m 0.00s\nsys\t0m 0.00s\n".encode())
    return code


async def _nohup(program: Program) -> int:
    return await program.run(program.args) if program.args else 0


async def _xargs(program: Program) -> int:
    flags, command = options(program, "n:I:0rtL:P:", mixed=False)
    data = (await program.stdin.read_all()).decode("utf-8", "surrogateescape")
    if "0" in flags:
        items = [one for one in data.split("\0") if one]
    elif "I" in flags:
        items = [line.strip() for line in data.splitlines() if line.strip()]
    else:
        try:
            items = shlex.split(data)
        except ValueError:
            items = data.split()
    command = command or ["echo"]
    if not items and "r" in flags:
        return 0
    if "I" in flags:
        calls = [[word.replace(flags["I"], item) for word in command] for item in items]
    else:
        step = int(flags.get("n") or flags.get("L") or len(items) or 1)
        calls = [[*command, *items[at : at + step]] for at in range(0, max(len(items), 1), step)]
    code = 0
    for call in calls:
        code = 123 if await program.run(call) else code
    return code


COMMANDS: Final[dict[str, Command]] = {
    "sysctl": _sysctl,
    "arch": _arch,
    "clear": _clear,
    "date": _date,
    "env": _env,
    "free": _run_free,
    "groups": _groups,
    "hostname": _hostname,
    "id": _id,
    "kill": _kill,
    "logname": _whoami,
    "nohup": _nohup,
    "nproc": _nproc,
    "printenv": _printenv,
    "ps": _ps,
    "pwd": _pwd,
    "sleep": _sleep,
    "stty": _stty,
    "sync": _do_nothing,
    "time": _time,
    "timeout": _timeout,
    "top": _top,
    "tty": _tty,
    "uname": _uname,
    "uptime": _uptime,
    "usleep": _usleep,
    "which": _run_which,
    "whoami": _whoami,
    "xargs": _xargs,
}
