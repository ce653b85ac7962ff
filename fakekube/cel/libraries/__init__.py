"""The functions of the language, one module a library; `fakekube.cel.functions` puts them together."""
