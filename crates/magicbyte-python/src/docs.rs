//! The docstrings of the stubs in `python/magicbyte/_stubs`, which the build script makes files of.

/// The docstring of a class, function or member, by its stub and its name.
macro_rules! docstring {
    ($stub:ident, $name:ident) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($stub), "/", stringify!($name)))
    };
    ($stub:ident, $class:ident . $member:ident) => {
        include_str!(concat!(
            env!("OUT_DIR"),
            "/",
            stringify!($stub),
            "/",
            stringify!($class),
            ".",
            stringify!($member)
        ))
    };
}
pub(crate) use docstring;

/// A docstring with its signature in front, as CPython takes it.
macro_rules! signed {
    ($signature:literal, $docstring:expr) => {{
        const SIZE: usize = $signature.len() + $docstring.len() + 1;
        const BYTES: [u8; SIZE] = $crate::docs::joined($signature.as_bytes(), $docstring.as_bytes());
        const TEXT: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("a docstring has a zero"),
        };
        TEXT
    }};
}
pub(crate) use signed;

/// One after the other, and a zero.
pub(crate) const fn joined<const SIZE: usize>(first: &[u8], second: &[u8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let mut at = 0;
    while at < first.len() + second.len() {
        bytes[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    bytes
}
