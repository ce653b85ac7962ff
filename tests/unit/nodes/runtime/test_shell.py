"""The shell and the commands of containers, by what they write and how they end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakekube import Cluster
from fakekube.nodes.rules import PodInside, Result
from fakekube.nodes.runtime.shell.parser import IncompleteError, ShellSyntaxError, parse
from tests.unit.nodes.runtime import busybox


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"a.conf": "x=1\ny=2\n"}})
        made.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"password": "hunter2"}})
        volumes = [
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "shared", "emptyDir": {}},
            {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]
        mounts = [
            {"name": "config", "mountPath": "/config"},
            {"name": "shared", "mountPath": "/shared"},
            {"name": "info", "mountPath": "/info"},
            {"name": "config", "mountPath": "/etc/one.conf", "subPath": "a.conf"},
        ]
        env = [
            {"name": "GREETING", "value": "hello $(POD)"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "WHO", "value": "$(POD) $$(POD) $(NOBODY)"},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
        ]
        main = {
            "name": "main",
            "image": "alpine",
            "env": env,
            "envFrom": [{"secretRef": {"name": "secret"}}],
            "volumeMounts": mounts,
            "resources": {"requests": {"cpu": "250m"}},
        }
        other = {
            "name": "other",
            "image": "busybox",
            "volumeMounts": [{"name": "shared", "mountPath": "/data", "readOnly": True}],
        }
        spec = {"containers": [main, other], "volumes": volumes}
        made.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec})
        made.settle()
        yield made


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> PodInside:
    return cluster.pods.get("web")


SCRIPTS = [
    ("echo hello world", "hello world\n"),
    ("echo 'a  b' \"c  d\" e  f", "a  b c  d e f\n"),
    ("x=1; y=$x$x; echo $y ${z:-none} ${#y}", "11 none 2\n"),
    ("echo a b c | tr ' ' '\\n' | sort -r | head -2", "c\nb\n"),
    ("false && echo yes || echo no; true && echo yes", "no\nyes\n"),
    ("if [ 1 -lt 2 ]; then echo less; elif true; then echo never; else echo more; fi", "less\n"),
    ("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
    ("i=0; while true; do i=$((i + 1)); [ $i -ge 3 ] && break; done; echo $i", "3\n"),
    ("i=3; until [ $i -eq 0 ]; do echo -n $i; i=$((i-1)); done", "321"),
    ("case foo.txt in *.md) echo md;; *.txt|*.text) echo text;; *) echo other;; esac", "text\n"),
    ("f() { local x=in; echo $x $1; return 3; }; x=out; f arg; echo $? $x", "in arg\n3 out\n"),
    ("cat <<END\nx is $((6 * 7)) $POD\nEND", "x is 42 web\n"),
    ("cat <<'END'\n$POD\nEND", "$POD\n"),
    ("echo one > /tmp/f; echo two >> /tmp/f; cat < /tmp/f; wc -l < /tmp/f", "one\ntwo\n2\n"),
    ("(cd /tmp; pwd); pwd", "/tmp\n/\n"),
    ("echo $(echo inner `echo deeper`) \"$(printf 'a\\n\\n')\"", "inner deeper a\n"),
    ("set -- a 'b c' d; echo $#; for x in \"$@\"; do echo \"<$x>\"; done; shift 2; echo $1", "3\n<a>\n<b c>\n<d>\nd\n"),
    ("x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${x/./-} ${x//./-} ${x:2:1}", "a.b a b.c c a-b.c a-b-c b\n"),
    ("echo 'a b' | while read x y; do echo $y $x; done", "b a\n"),
    ("cd /config; echo *.conf; echo *.nothing", "a.conf\n*.nothing\n"),
    ("sleep 0 & wait; echo done", "done\n"),
    ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n"),
    ("trap 'echo e' EXIT; trap 'x' USR1; trap; trap - EXIT", "trap -- 'echo e' EXIT\ntrap -- 'x' USR1\n"),
    ("continue; echo $?; for i in 1 2; do break 9; done; echo $i", "0\n1\n"),
    ("f() { break; }; for i in 1 2; do f; echo $i; done; echo end", "end\n"),
    ("f() { echo $x; }; x=0; x=1 f; echo $x; x=2 cd /; echo $x; x=3 :; echo $x", "1\n0\n0\n3\n"),
    ("f() { (local x=1); x=7; }; x=0; f; (readonly x); x=8; echo $x", "8\n"),
    ("command -V cd; command -v f || echo $?", "cd is a shell builtin\n127\n"),
    ("unset -f -v x; printf ' a  b c ' | { read x y; echo \"$x|$y\"; }", "a|b c\n"),
    ("sh -c 'exit 4'; echo $?; ! true; echo $?", "4\n1\n"),
    ("printf '%05d|%-4s|%x|%s\\n' 42 ab 255 'c d'", "00042|ab  |ff|c d\n"),
    ("seq 3 | sed -n '2,$p' | sed 's/\\(.\\)/<\\1>/'", "<2>\n<3>\n"),
    ("echo 'a:b:c' | cut -d: -f1,3; echo abc | cut -c2-", "a:c\nbc\n"),
    ("printf 'b\\na\\nb\\n' | sort | uniq -c | sort -rn", "      2 b\n      1 a\n"),
    ("echo hi | base64; echo aGkK | base64 -d; echo -n | md5sum", "aGkK\nhi\nd41d8cd98f00b204e9800998ecf8427e  -\n"),
    ("grep -n 2 /config/a.conf; grep -v 2 /config/a.conf; grep -q nope /config/a.conf; echo $?", "2:y=2\nx=1\n1\n"),
    ("mkdir -p /tmp/d/e && touch /tmp/d/e/f && find /tmp/d -type f && rm -r /tmp/d && ls /tmp/d 2>&1", "/tmp/d/e/f\n"
     "ls: /tmp/d: No such file or directory\n"),
    ("mkdir -p /tmp/f1/a/b; touch /tmp/f1/qx /tmp/f1/y; find /tmp/f1 -name 'q?' -o -type d -name b", "/tmp/f1/a/b\n/tmp/f1/qx\n"),
    ("mkdir -p /tmp/f2/a/b; touch /tmp/f2/a/g /tmp/f2/h; find /tmp/f2 -name a -prune -o ! -type d -print", "/tmp/f2/h\n"),
    ("mkdir /tmp/f3; cd /tmp/f3; touch g h i; find . -type f \\( -name g -o -name h \\) -exec echo {} + -exec echo x {} \\;",
     "x ./g\nx ./h\n./g ./h\n"),
    ("mkdir /tmp/f4; cd /tmp/f4; echo 12345 > s; : > e; chmod 600 s; find . -size -10c -type f ! -empty; find . -perm 600; find . -empty",
     "./s\n./s\n./e\n"),
    ("mkdir -p /tmp/f5/a/b; find /tmp/f5 -depth -mindepth 1; find /tmp/f5 -maxdepth 1 -mindepth 1 -delete 2>&1; echo $?",
     "/tmp/f5/a/b\n/tmp/f5/a\nfind: /tmp/f5/a: Directory not empty\n1\n"),
    ("cd /tmp; dd if=/dev/zero of=z bs=1M count=3 2>&1; wc -c < z; dd if=/dev/urandom bs=100000 count=2 status=none | wc -c",
     "3+0 records in\n3+0 records out\n3145728\n200000\n"),
    ("cd /tmp; echo abcdef > w; echo XY | dd of=w bs=1 seek=2 count=2 conv=notrunc status=none; cat w; dd if=w bs=2 skip=1 count=1 2>&1;"
     "printf abc | dd of=w bs=2 seek=1 2>&1; cat w", "abXYef\nXY1+0 records in\n1+0 records out\n1+1 records in\n1+1 records out\nababc"),
    ("echo a | dd skip=1000000000000 2>&1", "0+0 records in\n0+0 records out\n"),
    ("sleep 100 & ps | grep -c 'sleep 100$'; kill $!", "1\n"),
    ("echo a b | xargs -n1 echo x; echo $((0x10 + 010)) $((7 / -2)) $((1 ? 2 : 3))", "x a\nx b\n24 -3 2\n"),
    ("yes | head -2; echo ${PIPE:-ended}", "y\ny\nended\n"),
    ("tar cf - -C /config ./a.conf | tar -tf - ; basename /a/b.c .c; dirname /a/b.c", "./a.conf\nb\n/a\n"),
    ("echo $GREETING; echo $WHO; echo $CPU $password", "hello $(POD)\nweb $(POD) $(NOBODY)\n250 hunter2\n"),
    ("cat /config/a.conf /etc/one.conf | wc -l; cat /info/labels", '4\napp="web"'),
    ("cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; hostname", "defaultweb\n"),
    ("echo $KUBERNETES_SERVICE_PORT; id; whoami", "443\nuid=0(root) gid=0(root) groups=0(root)\nroot\n"),
    ("readlink /config/a.conf; ln -s /config/a.conf /tmp/l; head -1 /tmp/l", "..data/a.conf\nx=1\n"),
    ("timeout 0.01 sleep 100; echo $?", "143\n"),
    ("x=1; { x=2; echo grouped; } > /tmp/g; echo $x; cat /tmp/g", "2\ngrouped\n"),
    ("which cat; command -v nothing || echo none; type cd", "/bin/cat\nnone\ncd is a shell builtin\n"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "written"), SCRIPTS, ids=[script[:40] for script, _ in SCRIPTS])
def test_script_output(pod: PodInside, script: str, written: str) -> None:
    found = pod.exec(script)
    assert (found.stdout, found.stderr) == (written, "")


def test_scripts_do_what_they_do_with_busybox(pod: PodInside) -> None:
    different = []
    for one in busybox.recorded():
        found = pod.exec(one.script)
        if (found.code, found.stdout) != (one.code, one.stdout):
            different.append((one, found))
    assert not different


FAILURES = [
    # Recorded with busybox 1.35.
    ("set a b; shift -1; echo late", Result(2, "", "sh: shift: Illegal number: -1\n")),
    ("break 0", Result(2, "", "sh: break: Illegal number: 0\n")),
    ("trap 'echo got; exit 3' USR1; kill -USR1 $$; echo late", Result(3, "got\n", "")),
    ("trap x FOO 99", Result(1, "", "sh: trap: FOO: invalid signal specification\nsh: trap: 99: invalid signal specification\n")),
    ("local x; echo late", Result(2, "", "sh: local: not in a function\n")),
    ("nosuch", Result(127, "", "sh: nosuch: not found\n")),
    ("/config/a.conf", Result(126, "", "sh: /config/a.conf: Permission denied\n")),
    ("cat /nofile", Result(1, "", "cat: can't open '/nofile': No such file or directory\n")),
    ("echo x > /no/where", Result(1, "", "sh: can't create /no/where: nonexistent directory\n")),
    ("cat < /nofile", Result(1, "", "sh: can't open /nofile: no such file\n")),
    ("cd /nowhere", Result(2, "", "sh: cd: can't cd to /nowhere: No such file or directory\n")),
    ("echo x > /config/a.conf", Result(1, "", "sh: can't create /config/a.conf: Read-only file system\n")),
    ("if true", Result(2, "", "sh: syntax error: unexpected end of file\n")),
    ("echo a; fi", Result(2, "", 'sh: syntax error: unexpected "fi"\n')),
    ("set -e; false; echo never", Result(1, "", "")),
    ("set -u; echo $nothing", Result(2, "", "sh: nothing: parameter not set\n")),
    ("echo ${x:?must be set}", Result(2, "", "sh: x: must be set\n")),
    ("echo $((1 / 0))", Result(2, "", "sh: arithmetic syntax error: divide by zero\n")),
    ("ls --nonsense", Result(1, "", "ls: unrecognized option: nonsense\n")),
    ("find /tmp -name", Result(1, "", "find: -name requires an argument\n")),
    ("find /tmp -nothing", Result(1, "", "find: unrecognized: -nothing\n")),
    ("find /nofile", Result(1, "", "find: /nofile: No such file or directory\n")),
    ("kill -9 $$", Result(137, "", "")),
    ("tar cf /dev/null /nofile", Result(1, "", "tar: /nofile: No such file or directory\n"
     "tar: error exit delayed from previous errors\n")),
    ("tar cf /dev/null /nofile /etc/hostname /etc/hosts", Result(1, "", "tar: /nofile: No such file or directory\n"
     "tar: removing leading '/' from member names\ntar: error exit delayed from previous errors\n")),
]  # fmt: skip


@pytest.mark.parametrize(("script", "result"), FAILURES, ids=[script for script, _ in FAILURES])
def test_script_errors_and_exit_codes(pod: PodInside, script: str, result: Result) -> None:
    assert pod.exec(script) == result


def test_missing_programs_fail_with_the_message_of_runc(pod: PodInside) -> None:
    text = "OCI runtime exec failed: exec failed: unable to start container process: "
    assert pod.exec(["nosuch"]) == Result(127, "", f'{text}exec: "nosuch": executable file not found in $PATH: unknown\n')
    assert pod.exec(["/bin/no"]) == Result(127, "", f'{text}exec: "/bin/no": stat /bin/no: no such file or directory: unknown\n')


def test_containers_of_a_pod_share_only_volumes(pod: PodInside) -> None:
    pod.exec("echo shared > /shared/f; echo own > /tmp/own")
    assert pod.exec("cat /data/f; ls /tmp; echo x > /data/g", container="other") == Result(
        1, "shared\n", "sh: can't create /data/g: Read-only file system\n"
    )


def test_mounted_config_map_is_updated(cluster: Cluster, pod: PodInside) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"k": "1"}})
    volume = {"name": "v", "configMap": {"name": "later", "items": [{"key": "k", "path": "deep/file", "mode": 0o400}]}}
    mounts = [{"name": "v", "mountPath": "/v"}]
    spec = {"containers": [{"name": "c", "image": "busybox", "volumeMounts": mounts}], "volumes": [volume]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "follower"}, "spec": spec})
    cluster.settle()
    inside = cluster.pods.get("follower")
    assert inside.exec("cat /v/deep/file").stdout == "1"
    cluster.patch("configmaps", "later", {"data": {"k": "2"}})
    assert inside.exec("cat /v/deep/file; stat -c %a /v/..data/deep/file").stdout == "2400\n"


def test_stdin_is_read_line_by_line(pod: PodInside) -> None:
    script = "read first; echo $first\nread second\nmore\necho $second\nif true\nthen echo yes; fi\nexit 5\necho never\n"
    assert pod.exec(["sh"], stdin=script.replace("read first; echo $first\n", "")) == Result(5, "more\nyes\n", "")
    assert pod.exec("read x; echo $x; cat", stdin="one\ntwo\nthree\n").stdout == "one\ntwo\nthree\n"


def test_tar_create_and_extract(pod: PodInside) -> None:
    packed = pod.exec("tar cf - -C / etc/one.conf | base64 -w 0").stdout
    assert (
        pod.exec("mkdir -p /tmp/t; base64 -d | tar -xmf - -C /tmp/t; cat /tmp/t/etc/one.conf", stdin=packed).stdout
        == "x=1\ny=2\n"
    )


def test_a_truncated_archive_is_a_short_read(pod: PodInside) -> None:
    script = "cd /tmp; head -c 100000 /dev/urandom > big; tar cf whole.tar big; head -c 60000 whole.tar | tar xf - ; echo $?"
    assert pod.exec(script) == Result(0, "1\n", "tar: short read\n")
    assert pod.exec("cd /tmp; tar czf whole.tgz big; head -c 60000 whole.tgz | tar xzf - ; echo $?").stdout == "1\n"
    assert pod.exec("head -c 3000 /dev/urandom | tar xf - ").code == 1


def test_mounted_token_authenticates_as_the_service_account(cluster: Cluster, pod: PodInside) -> None:
    token = pod.exec(
        "cat /run/secrets/kubernetes.io/serviceaccount/token || cat /var/run/secrets/kubernetes.io/serviceaccount/token"
    )
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.stdout}}
    user = cluster.create(review)["status"]["user"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["web"]


@pytest.mark.parametrize(
    "text", ["if true", "echo 'a", 'echo "a', "echo $(a", "a &&", "a |", "{ a", "cat <<X\nb", "echo ${a", "$((1"]
)
def test_unterminated_script_raises_incomplete_error(text: str) -> None:
    with pytest.raises(IncompleteError):
        parse(text)


@pytest.mark.parametrize("text", ["fi", "a ;; b", ") a", "| a", "for 1 in a; do b; done", "a && && b", "${}"])
def test_invalid_script_raises_syntax_error(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        parse(text)


def test_the_shell_has_the_name_by_which_it_was_called(pod: PodInside) -> None:
    assert pod.exec(["/bin/sh", "-c", "echo $0; nosuch"]) == Result(127, "/bin/sh\n", "/bin/sh: nosuch: not found\n")
