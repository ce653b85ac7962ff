"""The kinds of certificates.k8s.io: CertificateSigningRequests, PodCertificateRequests, ClusterTrustBundles.

Specified by: pkg/apis/certificates, pkg/registry/certificates.
"""
