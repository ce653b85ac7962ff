"""What programs in containers compute and keep is bounded."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from fakekube import Cluster, Image
from fakekube.net.streaming.kubelet_api import KubeletError
from fakekube.nodes import rules
from fakekube.nodes.rules import PodInside, Result
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import checkpoint, sleep


@pytest.fixture
def pod() -> Iterator[PodInside]:
    with Cluster() as cluster:
        container = {"name": "main", "image": "alpine"}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}})
        cluster.settle()
        yield cluster.pods.get("web")


#: Patterns for which a matcher that backtracks takes an exponential or a high polynomial time.
def run(pod: PodInside, script: str) -> Result:
    """Runs a script, however busy this machine is."""
    return pod.exec(script, timeout=90.0)


HARD = [
    "x=$(printf '%030d' 0); echo $x | grep -E '(0+)+$' | wc -l; echo $x | grep -cE '^(0|00)+1'",
    "x=$(printf '%030d' 0); echo $x | sed -E 's/(0+)+1/y/; s/^((0*)*)*$/end/'",
    "x=$(printf '%0200d' 0); case $x in *0*0*0*0*0*0*0*0*0*0*0*0*1) echo no;; *) echo yes;; esac",
    "x=$(printf '%020000d' 0); y=${x%%*0*0*0*0*0*0*0*1}; z=${x##*0*0*0*0*0*0*1}; echo ${#y} ${#z}",
    "x=$(printf '%0200d' 0); touch /tmp/$x; find /tmp -name '*0*0*0*0*0*0*0*0*0*0*0*0*0*1'; echo /tmp/*0*0*0*0*0*0*0*0*0*0*0*0*1",
    "x=$(printf '%030d' 0); expr $x : '\\(0*\\)*1$'",
]
WRITTEN = ["1\n0\n", "end\n", "yes\n", "20000 20000\n", "/tmp/*0*0*0*0*0*0*0*0*0*0*0*0*1\n", "\n"]


@pytest.mark.parametrize(("script", "written"), list(zip(HARD, WRITTEN, strict=True)))
def test_hard_patterns_take_linear_time(pod: PodInside, script: str, written: str) -> None:
    assert run(pod, script).stdout == written


def test_nested_directories_are_walked_whole(pod: PodInside) -> None:
    """However many; programs do not recurse."""
    deep = "cd /tmp; mkdir -p " + "d/" * 1100
    script = "; cp -r d e; chmod -R 700 e; find e -perm 700 | wc -l; du e | wc -l; tar c d | tar t | wc -l; grep -r x d"
    found = run(pod, f"{deep}{script}; find . -depth | tail -n 1; find e -delete; rm -r d; ls")
    assert (found.code, found.stdout, found.stderr) == (0, "1100\n1100\n1100\n.\n", "")


@pytest.mark.parametrize(
    ("part", "found"),
    [("-name x -o", "/etc/hosts\n"), ("! !", "/etc/hosts\n"), ("-name hosts -a", "/etc/hosts\n"), ("!", "/etc/hosts\n")],
)
def test_long_expressions_of_find(pod: PodInside, part: str, found: str) -> None:
    assert run(pod, f"find /etc/hosts {f'{part} ' * 5000} -name hosts").stdout == found


@pytest.mark.parametrize("name", ["a" * 256, "/".join(["d"] * 2049)])
def test_names_and_paths_have_the_lengths_of_linux(pod: PodInside, name: str) -> None:
    """NAME_MAX and PATH_MAX."""
    assert "File name too long" in run(pod, f"mkdir {name}").stderr


EXPRESSIONS = [
    ("echo aXbX | sed 's/X$/Y/; s/^a/b/'", "bXbY\n"),
    ("echo 'a+b(c)|d{2}' | grep -o 'a+b(c)|d{2}'", "a+b(c)|d{2}\n"),
    ("echo aab | grep -oE 'a{2}b|a'; echo aab | grep -o 'a\\{2\\}b'", "aab\naab\n"),
    ("echo 'x]y' | grep -o '[]x]*'; echo 'a-b^c' | sed 's/[-^]/_/g'", "x]\na_b_c\n"),
    ("echo 'foo.bar' | sed 's/[.]/\\\\&/g; s/[[:alpha:]]*$/<&>/'", "foo\\.<bar>\n"),
    ("echo '*a' | grep -c '*a'; echo ab | sed -E 's/(a)(b)/\\2\\1/'", "1\nba\n"),
    ("echo aaaa | sed 's/a/b/2'; echo aaaa | sed 's/a/b/3g'", "abaa\naabb\n"),
    ("echo abcd | grep -oE 'ab|abcd'", "abcd\n"),
    ("x=a/b/c; echo ${x#*/} ${x##*/} ${x%/*} ${x%%/*} ${x//\\//.} ${x#[!a]} ${x%[a-c]}", "b/c c a/b a a.b.c a/b/c a/b/\n"),
]


@pytest.mark.parametrize(("script", "written"), EXPRESSIONS)
def test_posix_expressions(pod: PodInside, script: str, written: str) -> None:
    assert run(pod, script).stdout == written


def test_back_references_are_refused_in_words(pod: PodInside) -> None:
    found = run(pod, "echo aa | grep '\\(a\\)\\1'")
    assert (found.code, found.stderr) == (2, "grep: bad regex '\\(a\\)\\1': back references are not supported (RE2)\n")


@pytest.mark.parametrize(
    "script",
    [
        "cat /dev/zero > /dev/null",
        "yes > /dev/null",
        "while :; do :; done",
        "dd if=/dev/zero of=/dev/null",
        "seq 1 9999999999 > /dev/null",
        "f() { f; f; }; while :; do f 2>/dev/null; done",
    ],
)
def test_programs_that_never_wait_can_be_killed(pod: PodInside, script: str) -> None:
    assert run(pod, f"({script}) & sleep 0; kill $!; wait $!; echo $?").stdout == "143\n"


@pytest.mark.parametrize("script", ["while :; do sleep 1000 & done", "while :; do sleep 1000 | cat & done"])
def test_the_processes_of_a_container_are_bounded(pod: PodInside, script: str) -> None:
    assert "sh: can't fork: Resource temporarily unavailable\n" in run(pod, script).stderr


def test_busy_programs_leave_time_to_others(pod: PodInside) -> None:
    for _ in range(20):
        run(pod, "(while :; do :; done) & :")
    assert run(pod, "echo hello").stdout == "hello\n"


@pytest.mark.parametrize(
    "script",
    [
        "x=xxxxxxxx; while :; do x=$x$x; done",
        "printf %999999999s",
        "x=$(cat /dev/zero)",
        "cat /dev/zero | tac",
        'awk "BEGIN { while (1) a[i++] = sprintf(\\"%100000d\\", i) }"',
        'awk "BEGIN { while (1) x = a[sprintf(\\"%100000d\\", i++)] }"',
    ],
)
def test_a_program_that_needs_too_much_memory_is_killed(pod: PodInside, script: str) -> None:
    assert run(pod, f"sh -c '{script}' & wait $!; echo $?").stdout.endswith("137\n")


KEEPER = """
x=$(head -c 300000 /dev/zero | tr '\\0' a) || exit $?
[ $1 = 0 ] || sh /tmp/keeper $(($1 - 1))
echo $1 $?
"""


def test_the_programs_of_a_container_share_its_memory() -> None:
    """What a program had is free after its end."""
    container = {"name": "main", "image": "alpine", "resources": {"limits": {"memory": "800Ki"}}}
    with Cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}})
        cluster.settle()
        pod = cluster.pods.get("web")
        run(pod, f"cat > /tmp/keeper <<'END'{KEEPER}END")
        assert run(pod, "sh /tmp/keeper 1").stdout == "0 0\n1 0\n"
        assert run(pod, "sh /tmp/keeper 2").stdout == "1 137\n2 0\n"
        assert run(pod, "sh /tmp/keeper 1").stdout == "0 0\n1 0\n"


@pytest.mark.parametrize("redirection", ["", ">&2"])
def test_the_output_that_is_collected_is_bounded(pod: PodInside, redirection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "OUTPUT_BYTES", 300_000)
    with pytest.raises(KubeletError, match=r"^the output of sh has more than 300000 bytes$"):
        run(pod, f"yes {redirection}")


def test_a_program_that_writes_for_ever_is_left_after_a_time(pod: PodInside) -> None:
    with pytest.raises(TimeoutError, match=r"did not end in 0\.2 s"):
        pod.exec("while :; do echo a; sleep 0.01; done", timeout=0.2)


def test_files_have_a_bounded_space(pod: PodInside) -> None:
    assert "No space left on device" in run(pod, "dd if=/dev/zero of=/tmp/a bs=1M").stderr
    assert run(pod, "echo x > /tmp/b; rm /tmp/a; echo y > /tmp/b; cat /tmp/b").stdout == "y\n"
    assert "No space left on device" in run(pod, "truncate -s 100G /tmp/c").stderr


def test_elements_that_are_deleted_need_no_memory(pod: PodInside) -> None:
    script = 'BEGIN { while (n++ < 1500) { a[n] = sprintf("%100000d", n); if (n % 2) delete a[n]; else delete a } print n }'
    assert run(pod, f"awk '{script}'").stdout == "1501\n"


def ended(script: str, env: list[dict[str, str]]) -> tuple[int, str]:
    """Returns the exit code and the log of a pod that runs a script with these variables."""
    with Cluster() as cluster:
        container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], "env": env}
        spec = {"restartPolicy": "Never", "containers": [container]}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        pod = cluster.wait_for("pods", "p", until=lambda pod: (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"))
        assert pod is not None
        return pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], cluster.pods.get("p").logs()


DOUBLING = [{"name": "V0", "value": "x" * 10}, *({"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, 61))]
REPEATED = [{"name": "A", "value": "x" * 100_000}, *({"name": f"V{n}", "value": "$(A)"} for n in range(2_000))]


@pytest.mark.parametrize("variables", [DOUBLING, REPEATED])
def test_variables_that_refer_to_others_are_bounded(variables: list[dict[str, str]]) -> None:
    assert ended("echo never", variables) == (255, "exec sh: argument list too long\n")


def test_arguments_are_bounded() -> None:
    assert ended("echo $(A)" + "$(A)" * 1_000, REPEATED[:1]) == (255, "exec sh: argument list too long\n")


@pytest.mark.parametrize("script", ["f() { f; }; f", "(" * 5000 + "echo" + ")" * 5000])
def test_a_program_that_recurses_without_end_is_killed(script: str) -> None:
    """As busybox, whose stack is full: SIGSEGV."""
    assert ended(script, [])[0] == 139


def state_after(cluster: Cluster, *command: str) -> dict[str, object]:
    """Returns the last state of a container that runs a command and is not started again."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": command}]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    pod = cluster.wait_for("pods", "p", until=lambda pod: (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"))
    assert pod is not None
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return {key: terminated[key] for key in ("exitCode", "reason")}


def test_a_container_whose_program_needs_too_much_memory_is_oom_killed() -> None:
    with Cluster() as cluster:
        assert state_after(cluster, "sh", "-c", "x=x; while :; do x=$x$x; done") == {"exitCode": 137, "reason": "OOMKilled"}


@pytest.mark.parametrize(
    ("script", "code", "written"),
    [("kill -9 1; kill 1; echo alive", 0, "alive\n"), ("trap 'echo got; exit 5' TERM; kill 1; echo late", 5, "got\n")],
)
def test_the_first_process_only_gets_signals_that_it_handles(script: str, code: int, written: str) -> None:
    assert ended(script, []) == (code, written)


async def _never_waits() -> None:
    while True:
        await checkpoint()


async def _waits() -> None:
    await sleep(1000)


@pytest.mark.parametrize("run", [_never_waits, _waits])
def test_programs_end_with_their_cluster(run: Callable[[], Awaitable[None]]) -> None:
    started, stopped = threading.Event(), threading.Event()

    async def program(_: Program) -> int:
        started.set()
        try:
            await run()
        finally:
            stopped.set()
        return 0

    with Cluster() as cluster:
        cluster.images["example.com/own"] = Image(programs={"own": program})
        spec = {"containers": [{"name": "main", "image": "example.com/own", "command": ["own"]}]}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        assert started.wait(60)
        assert not stopped.is_set()
    assert stopped.wait(60)
