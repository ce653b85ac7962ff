"""Stories: requests with the answers of a real server, and how fakekube is held to them.

A file of a folder `stories`, or of `fixtures/kinds`, is one story, a line of it one request: `do` is method, path, body (and content type), then what
was answered: `code` and the `object` or the `message`, and `warnings`. What differs from server to server (uids,
times, revisions, managedFields, what controllers add) is left out. $NS is a name that nobody else has. A `pause` lets
a real server catch up with itself.

    python tests/unit/stories.py https://TOKEN@HOST:PORT FILE ...

asks a server again and writes its answers into the files.
"""

from __future__ import annotations

import io
import json
import re
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fakekube.apimachinery.features import emulation
from fakekube.apiserver import server as assembly
from fakekube.apiserver.registry.scope import Settings
from fakekube.base.chance import Chance
from fakekube.base.clock import Clock

JSON = "application/json"
AGENT = "stories/1"
#: What servers choose, where the story does not.
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_PORT = re.compile(r'("(?:healthCheckN|n)odePort": ?)(\d+)')
_TOKEN_VOLUME = re.compile(r"kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}")

NAME = "$NS"
VOLATILE = ("creationTimestamp", "managedFields", "resourceVersion", "uid")
#: The condition that a controller puts into flow schemas.
CONTROLLED = "Dangling"

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
#: In the text of an object within a message.
_REVISION = re.compile(r'(\bresourceVersion\\*":\\*")\d+')
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')

Step = dict[str, Any]
Ask = Callable[[str, str, Any, str], tuple[int, list[str], bytes]]
"""(method, path, body, content type) → status, Warning headers, body."""


RECORDED_MINOR = "1.36"
"""The minor whose server answered the stories."""


def load(path: Path) -> list[Step]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def beside(module: str) -> list[Path]:
    """The stories in the folder of a test module (its __file__)."""
    return sorted((Path(module).parent / "stories").glob("*.jsonl"))


def fresh_name() -> str:
    return f"story-{secrets.token_hex(4)}"


def differences(story: list[Step], ask: Ask, name: str) -> Iterator[str]:
    """Where the answers are not those of the story, with a name in place of the one in it."""
    given = _given(story)
    for number, step in enumerate(story, 1):
        if "pause" in step:
            continue
        told = answered(step["do"], ask, name, given)
        wanted = {key: value for key, value in step.items() if key != "do"}
        if told != wanted:
            yield f"{number}: {' '.join(step['do'][:2])}\n  wanted {json.dumps(wanted)}\n  got    {json.dumps(told)}"


def _given(story: list[Step]) -> frozenset[str]:
    """The addresses and numbers that the requests of a story name."""
    return frozenset(re.findall(r"[\d.]+", json.dumps([step.get("do") for step in story])))


def answered(do: list[Any], ask: Ask, name: str, given: frozenset[str]) -> Step:
    """What a server answers to a request, as a story tells it."""
    method, path, body, content_type = [*do, None, JSON][:4] if len(do) < 3 else [*do, JSON][:4]
    sent = json.loads(json.dumps(body).replace(NAME, name))
    code, warnings, text = ask(method, path.replace(NAME, name), sent, content_type)
    told: Step = {"code": code}
    shown = _ADDRESS.sub(lambda found: found[0] if found[0] in given else "<ip>", text.decode().replace(name, NAME))
    shown = _PORT.sub(lambda found: found[0] if found[2] in given else f'{found[1]}"<port>"', shown)
    shown = _TOKEN_VOLUME.sub(lambda found: found[0] if found[0] in json.dumps(do) else "kube-api-access-<random>", shown)
    answer = steady(json.loads(shown))
    if isinstance(answer, dict) and answer.get("kind") == "Status" and code >= 300:
        told["message"] = answer.get("message")
    elif isinstance(answer, dict) and answer.get("kind") != "Status":
        told["object"] = {key: value for key, value in answer.items() if key not in ("kind", "apiVersion")}
    said = [json.loads(f'"{found}"') for header in warnings for found in _WARNING.findall(header.replace(name, NAME))]
    return {**told, "warnings": said} if said else told


def _uncontrolled(value: Any) -> Any:
    if isinstance(value, list) and value:
        return [item for item in value if not (isinstance(item, dict) and item.get("type") == CONTROLLED)]
    return value


def steady(value: Any) -> Any:
    """A part of an answer without what differs from server to server."""
    if isinstance(value, dict):
        kept = {name: (member, _uncontrolled(member)) for name, member in value.items() if name not in VOLATILE}
        return {name: steady(rest) for name, (member, rest) in kept.items() if rest or not member}
    if isinstance(value, list):
        return [steady(item) for item in value]
    if isinstance(value, str):
        return _REVISION.sub(r"\1<revision>", _TIME.sub("<time>", _UID.sub("<uid>", value)))
    return value


def recorded_settings() -> Settings:
    """The settings of a server of the minor that stories are recorded of."""
    return Settings(emulation(RECORDED_MINOR))


def differences_of_fresh_cluster(path: Path) -> list[str]:
    """Play a story to a cluster of its own; cluster_….jsonl to one with every admission plugin.

    The cluster has a seed, and the name is always the same: an allocated address cannot be one of the story by chance.
    """
    clock = Clock()
    profile = "cluster" if path.stem.startswith("cluster_") else "apiserver"
    machinery = assembly.build(clock=clock, settings=recorded_settings(), profile=profile, chance=Chance(0))
    found = list(differences(load(path), of_application(machinery.application), "story-00000000"))
    clock.close()
    return found


def of_application(application: Any) -> Ask:
    """Ask a WSGI application."""

    def ask(method: str, path: str, body: Any, content_type: str) -> tuple[int, list[str], bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": urllib.parse.unquote(path), "QUERY_STRING": query, "wsgi.url_scheme": "http",
            "HTTP_HOST": "127.0.0.1", "wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data)), "CONTENT_TYPE": content_type,
            "HTTP_ACCEPT": JSON, "HTTP_USER_AGENT": AGENT,
        }  # fmt: skip
        seen: list[Any] = []
        chunks = application(environ, lambda status, fields: seen.extend((status, fields)))
        headers = [value for name, value in seen[1] if name.lower() == "warning"]
        return int(seen[0][:3]), headers, b"".join(chunks)

    return ask


def of_server(url: str) -> Ask:
    """Ask a real server."""
    parts = urllib.parse.urlsplit(url)
    root = f"{parts.scheme}://{parts.hostname}:{parts.port}"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask(method: str, path: str, body: Any, content_type: str) -> tuple[int, list[str], bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {parts.username}", "Content-Type": content_type, "Accept": JSON, "User-Agent": AGENT}
        request = urllib.request.Request(root + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310
                return answer.status, answer.headers.get_all("Warning") or [], answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get_all("Warning") or [], error.read()

    return ask


def record(path: Path, ask: Ask) -> None:
    """Put the answers of a server into a story."""
    story = load(path)
    lines: list[str] = []
    name, given = fresh_name(), _given(story)
    for step in story:
        told = step
        if "pause" in step:
            time.sleep(step["pause"])
        else:
            told = {"do": step["do"], **answered(step["do"], ask, name, given)}
        lines.append(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    server = of_server(sys.argv[1])
    for file in sys.argv[2:]:
        record(Path(file), server)
