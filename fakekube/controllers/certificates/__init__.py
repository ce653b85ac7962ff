"""The controllers of CertificateSigningRequests (`controllers`); `requests` parses a request.

Specified by: pkg/controller/certificates.
"""
