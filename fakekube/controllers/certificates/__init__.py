"""The controllers of CertificateSigningRequests: `approver`, `signer` and `cleaner`; `requests` parses a request.

Specified by: pkg/controller/certificates.
"""
