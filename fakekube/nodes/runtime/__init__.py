"""The container runtime: logs, files, a shell with commands, and ports of containers. No program of this machine is run.

`runtime.Runtime` implements `kubelet_api.Kubelet`. A `sandbox.Sandbox` is a pod, a `container.Container` one run of a container.
Programs are coroutines (`scheduling`, `program`, `shell`, `commands`), which use a thread only while they run.
"""
