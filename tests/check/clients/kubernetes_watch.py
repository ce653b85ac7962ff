"""kubernetes: `Watch`, as its README uses it. Each program of this folder writes what a ConfigMap says into its annotation."""

from kubernetes import client, config, watch

config.load_kube_config()
api = client.CoreV1Api()
for event in watch.Watch().stream(api.list_config_map_for_all_namespaces, label_selector="app=checked"):
    config_map = event["object"]
    message, metadata = (config_map.data or {}).get("message"), config_map.metadata
    if event["type"] in {"ADDED", "MODIFIED"} and (metadata.annotations or {}).get("checked.dev/seen") != message:
        body = {"metadata": {"annotations": {"checked.dev/seen": message}}}
        api.patch_namespaced_config_map(metadata.name, metadata.namespace, body)
