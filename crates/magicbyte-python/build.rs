//! Docstrings of the compiled module: they are written once, in the stubs in `python/magicbyte/_stubs`.
//!
//! Each becomes a file, for the macro `docstring`: `#[doc = docstring!(builder, RecordsBuilder.build)]`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

const STUBS: &str = "../../python/magicbyte/_stubs";
const QUOTES: &str = "\"\"\"";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={STUBS}");
    let target = PathBuf::from(env::var("OUT_DIR")?);
    for stub in fs::read_dir(STUBS)? {
        let stub = stub?.path();
        let name = stub.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if name.starts_with('_') || stub.extension().is_none_or(|extension| extension != "pyi") {
            continue;
        }
        fs::create_dir_all(target.join(name))?;
        for (path, docstring) in docstrings(&fs::read_to_string(&stub)?) {
            fs::write(target.join(name).join(path), docstring)?;
        }
    }
    Ok(())
}

/// The docstring of each class, method, attribute and function of a stub, by its name.
fn docstrings(stub: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut class = String::new();
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let (is_member, declared) = match line.strip_prefix("    ") {
            Some(member) => (true, member),
            None => (false, line),
        };
        let named = declared.strip_prefix("def ").or_else(|| declared.strip_prefix("class "));
        let is_attribute = named.is_none();
        let Some(named) = named.or_else(|| attribute(declared).filter(|_| is_member)) else { continue };
        let name: String = named.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        if declared.starts_with("class ") {
            class.clone_from(&name);
        }
        // A signature may take several lines; one that ends with `...` has no docstring.
        let (mut end, mut open) = (line, depth(line));
        while open > 0 {
            let Some(next) = lines.next() else { return found };
            (end, open) = (next, open + depth(next));
        }
        let ahead = lines.clone().next().map(str::trim_start);
        let Some(first) = ahead.filter(|_| is_attribute || end.ends_with(':')) else { continue };
        let Some(first) = first.strip_prefix('r').unwrap_or(first).strip_prefix(QUOTES) else { continue };
        lines.next();
        let docstring = cleaned(first, &mut lines);
        // CPython has its own docstrings for its slots; to it, these are methods like any other.
        let is_method = name.starts_with("__arrow_c_") || name == "__reversed__";
        let is_special = name.starts_with("__") && !is_method;
        if !is_special {
            let path = if is_member { format!("{class}.{name}") } else { name };
            found.entry(path).or_insert(docstring);
        }
    }
    found
}

/// A line that declares an attribute, as in `name: type`.
fn attribute(line: &str) -> Option<&str> {
    let name = line.split(": ").next().filter(|name| name.len() < line.len())?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(line)
}

/// The number of brackets that a line opens and leaves open.
fn depth(line: &str) -> i32 {
    line.chars().map(|c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c))).sum()
}

/// A docstring that begins with the rest of a line: without its indentation, up to its quotes.
fn cleaned<'a>(first: &'a str, following: impl Iterator<Item = &'a str>) -> String {
    if let Some(only) = first.strip_suffix(QUOTES) {
        return only.trim().to_owned();
    }
    let mut rest = Vec::new();
    for line in following {
        if let Some(last) = line.trim_end().strip_suffix(QUOTES) {
            rest.push(last);
            break;
        }
        rest.push(line);
    }
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let margin = rest.iter().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
    let rest = rest.iter().map(|line| line.get(margin..).unwrap_or_default());
    let lines: Vec<_> = std::iter::once(first.trim()).chain(rest).collect();
    lines.join("\n").trim().to_owned()
}
