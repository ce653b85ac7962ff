"""kubernetes: `SharedInformer`."""

import threading

from kubernetes import client, config
from kubernetes.informer import ADDED, MODIFIED, SharedInformer

config.load_kube_config()
api = client.CoreV1Api()


def changed(*objects: object) -> None:
    config_map = objects[-1]
    message, metadata = (config_map.data or {}).get("message"), config_map.metadata
    if (metadata.annotations or {}).get("checked.dev/seen") != message:
        body = {"metadata": {"annotations": {"checked.dev/seen": message}}}
        api.patch_namespaced_config_map(metadata.name, metadata.namespace, body)


informer = SharedInformer(list_func=api.list_config_map_for_all_namespaces, label_selector="app=checked")
informer.add_event_handler(ADDED, changed)
informer.add_event_handler(MODIFIED, changed)
informer.start()
threading.Event().wait()
