"""The functions of the language, one module for each library; `fakekube.apimachinery.cel.declarations` has the table of all of
them."""
