"""kr8s: `watch`, in its asynchronous form."""

import asyncio

import kr8s.asyncio


async def main() -> None:
    api = await kr8s.asyncio.api()
    async for event, config_map in api.async_watch("configmaps", namespace=kr8s.ALL, label_selector="app=checked"):
        message = config_map.raw.get("data", {}).get("message")
        if event in {"ADDED", "MODIFIED"} and config_map.annotations.get("checked.dev/seen") != message:
            await config_map.annotate({"checked.dev/seen": message})


asyncio.run(main())
