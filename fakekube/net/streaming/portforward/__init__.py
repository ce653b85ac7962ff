"""Port forwarding: connections to ports of a pod, over WebSocket channels or SPDY.

Specified by: k8s.io/cri-streaming/pkg/streaming/portforward; k8s.io/apiserver/pkg/util/proxy/streamtunnel.go.
"""
