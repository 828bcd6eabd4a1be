"""The types of the compiled modules, one file for each topic of `crates/magicbyte-python/src/`.

For type checkers only: at run time everything here is in `magicbyte._core`, or in
`magicbyte.compat._core` (the files `compat_*.pyi`), whose own stubs re-export it.
"""
