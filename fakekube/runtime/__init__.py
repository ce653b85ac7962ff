"""What runs in containers: logs, files, a shell, ports. Nothing of this machine is run.

`runtime.Runtime` is what the API server asks (`kubelet_api.Kubelet`). A `sandbox.Sandbox` is a pod, a
`container.Container` one run of a container. Programs are coroutines (`scheduling`, `program`, `shell`, `commands`), which
cost a thread only while they work.
"""
