"""What all kinds share: types and their data, codecs, patches, selectors, errors, printers and the Common Expression Language.

Specified by: k8s.io/apimachinery, sigs.k8s.io/structured-merge-diff, k8s.io/kubernetes/pkg/printers, cel-go.
"""
