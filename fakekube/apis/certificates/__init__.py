"""The kinds of certificates.k8s.io: CertificateSigningRequests.

Specified by: pkg/apis/certificates, pkg/registry/certificates.
"""
