"""kopf: handlers of a ConfigMap."""

import kopf


@kopf.on.create("configmaps", labels={"app": "checked"})
@kopf.on.update("configmaps", labels={"app": "checked"})
def changed(body, patch, **_):
    patch.metadata.annotations["checked.dev/seen"] = body.get("data", {}).get("message")


if __name__ == "__main__":
    kopf.run(clusterwide=True, standalone=True)
