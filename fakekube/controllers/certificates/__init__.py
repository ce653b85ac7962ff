"""What becomes of CertificateSigningRequests: `approver`, `signer` and `cleaner`; `requests` reads what is asked for.

Specified by: pkg/controller/certificates.
"""
