"""Scenarios: clusters in which something is wrong, to learn and practise on, with tasks that are judged by objects and requests.

`scenario` reads a file, `runner` makes its cluster, judges its tasks and plays its solution; `library` has the scenarios that
come with the package.
"""
