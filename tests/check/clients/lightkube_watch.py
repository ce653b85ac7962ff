"""lightkube: `watch` with the retries that it ships."""

from lightkube import Client
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import on_error_retry

client = Client()
for event, config_map in client.watch(ConfigMap, namespace="*", labels={"app": "checked"}, on_error=on_error_retry):
    message, metadata = (config_map.data or {}).get("message"), config_map.metadata
    if event in {"ADDED", "MODIFIED"} and (metadata.annotations or {}).get("checked.dev/seen") != message:
        body = {"metadata": {"annotations": {"checked.dev/seen": message}}}
        client.patch(ConfigMap, metadata.name, body, namespace=metadata.namespace)
