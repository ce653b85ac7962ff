"""A client that only watches: it prints the changes of a resource. It behaves like an informer of client-go.

KUBECONFIG=… python tests/check/client.py [--resource configmaps] [--selector app=web] [--defect ID]
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

import defects
from discovery import Discovery
from reflector import PAGE_SIZE, Object, Reflector, key_of
from transport import Api

AGENT = "checked-client/1.0"


def arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options that client and controller share."""
    parser.add_argument("--kubeconfig", help="instead of the environment's KUBECONFIG")
    parser.add_argument("--idle", type=float, help="seconds of silence after which a stream is given up")
    parser.add_argument("--lists", action="store_true", help="list and watch, without initial events")
    parser.add_argument("--page", type=int, default=PAGE_SIZE, help="the limit of lists")
    parser.add_argument("--defect", default="", help="behave wrongly in one way; --defects lists them")
    parser.add_argument("--defects", action="store_true", help="list the defects and their rules")
    options = parser.parse_args()
    if options.defects:
        for defect in defects.DEFECTS.values():
            print(f"{defect.id:20} {defect.rule:4} {'+'.join(defect.commands):18} {defect.text}")
        sys.exit()
    defects.activate(options.defect)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    return options


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resource", default="configmaps")
    parser.add_argument("--selector", default="")
    options = arguments(parser)
    api = Api(options.kubeconfig, AGENT)
    discovery = Discovery(api)

    def told(kind: str, obj: Object, _: Object | None) -> None:
        print(kind, key_of(obj), obj["metadata"].get("resourceVersion"), flush=True)

    reflector = Reflector(
        api,
        lambda: discovery.find(options.resource).collection(),
        options.selector,
        told,
        forget=discovery.forget,
        idle=options.idle,
        initial_events=not options.lists,
        page=options.page,
    )
    reflector.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
