"""The parts of Go's standard library whose behaviour is visible in the API: quoting, numbers, durations, timestamps,
URLs, addresses, regular expressions, base64, JSON.

Each module implements a package of Go's standard library, with the error messages of that package. This package does
not depend on Kubernetes and imports no other package of fakekube.

Specified by: the packages of Go's standard library that each module names.
"""
