"""Stand-ins for the binaries that envtest and its relatives start: kube-apiserver, etcd and kubectl.

`folder` writes them; `kube_apiserver` is a cluster behind kube-apiserver's command line; `etcd` is as much of etcd as
start-up needs, because the API server keeps its objects itself; `kubectl` is for machines without the real one.

Nothing is imported here: the stand-ins start in a process of their own, and each imports what it needs.
"""
