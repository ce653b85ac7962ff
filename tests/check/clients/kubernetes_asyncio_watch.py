"""kubernetes_asyncio: `Watch`, as its README uses it."""

import asyncio

from kubernetes_asyncio import client, config, watch


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as connection:
        api = client.CoreV1Api(connection)
        async with watch.Watch().stream(api.list_config_map_for_all_namespaces, label_selector="app=checked") as stream:
            async for event in stream:
                config_map = event["object"]
                message, metadata = (config_map.data or {}).get("message"), config_map.metadata
                if event["type"] in {"ADDED", "MODIFIED"} and (metadata.annotations or {}).get("checked.dev/seen") != message:
                    body = {"metadata": {"annotations": {"checked.dev/seen": message}}}
                    await api.patch_namespaced_config_map(metadata.name, metadata.namespace, body)


asyncio.run(main())
