"""What Go reads and prints, which the API shows: quoting, numbers, durations, timestamps, URLs, addresses, regular
expressions, base64, JSON.

Each module stands for a package of Go's standard library and says its errors in that package's words. Nothing here knows of
Kubernetes, and nothing of ours is imported but this room.

Specified by: the packages of Go's standard library that each module names.
"""
