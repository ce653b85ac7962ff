"""pykube-ng: `watch` of a query."""

import pykube

api = pykube.HTTPClient(pykube.KubeConfig.from_env())
query = pykube.ConfigMap.objects(api).filter(namespace=pykube.all, selector={"app": "checked"})
for event in query.watch():
    config_map = event.object
    message = config_map.obj.get("data", {}).get("message")
    if event.type in {"ADDED", "MODIFIED"} and config_map.annotations.get("checked.dev/seen") != message:
        config_map.patch({"metadata": {"annotations": {"checked.dev/seen": message}}})
