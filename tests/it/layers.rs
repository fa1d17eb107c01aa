//! The import table of `src/lib.rs` holds: a room imports only rooms before it on the walk, and none but the command
//! line imports the configuration. No files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in the order of the walk, each with the outside crates that only it (and later rooms) may name.
const WALK: [&str; 19] = [
    "clock",
    "kafka",
    "source",
    "window",
    "targets",
    "mechanism",
    "accountant",
    "synopsis",
    "ledger",
    "sink",
    "feed",
    "metrics",
    "scale",
    "pipeline",
    "audit",
    "config",
    "serve",
    "telemetry",
    "cli",
];

/// What functions make stands where only mechanisms can open it, in a file that imports nothing.
const EXACT: &str = "crate::mechanism::exact::Exact";

/// Who may use what; a crate that is not listed is free.
const CRATES: [(&str, &[&str]); 7] = [
    ("rdkafka", &["kafka", "source", "ledger", "sink", "feed", "scale", "cli"]),
    ("rusqlite", &["ledger"]),
    ("prometheus", &["metrics", "audit"]),
    ("axum", &["serve"]),
    ("tracing", &["source", "feed", "scale", "pipeline", "audit", "serve", "telemetry", "cli"]),
    ("parquet", &["source", "cli"]),
    ("ureq", &["source"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The room of a file, and the program text before its tests, without comments.
fn read(path: &Path) -> (String, String) {
    let inside = path.strip_prefix("src").expect("a source file");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("it can be read");
    let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<&str> = program.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    (first.trim_end_matches(".rs").to_string(), code.join("\n"))
}

/// Every room named as `crate::room` in `code`, in `use` groups too.
fn rooms_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let inner = group.split("};").next().unwrap_or_default();
            named.extend(inner.split(',').map(|part| first_word(part.trim())));
        } else {
            named.insert(first_word(rest));
        }
    }
    named
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Whether `name` may be imported by `room`.
fn is_allowed(room: &str, name: &str) -> bool {
    let place = |wanted: &str| WALK.iter().position(|room| *room == wanted);
    match (place(room), place(name)) {
        _ if room == name || room == "main" || room == "lib" => true,
        (Some(room), Some(name)) => name < room,
        _ => false,
    }
}

#[test]
fn a_room_imports_only_rooms_before_it() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    assert!(files.len() > 20, "the source was found");
    let mut wrong = Vec::new();
    for path in &files {
        let (room, code) = read(path);
        let code = if room == "targets" { code.replace(EXACT, "") } else { code };
        for name in rooms_named(&code) {
            if !is_allowed(&room, &name) {
                wrong.push(format!("{}: {room} must not import {name}", path.display()));
            }
            if name == "config" && !["config", "cli"].contains(&room.as_str()) {
                wrong.push(format!("{}: only the command line reads the configuration", path.display()));
            }
        }
        for (outside, rooms) in CRATES {
            let is_used = code.contains(&format!("use {outside}::")) || code.contains(&format!(" {outside}::"));
            if is_used && !rooms.contains(&room.as_str()) {
                wrong.push(format!("{}: {room} must not use {outside}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn exact_values_stand_in_a_file_that_imports_no_room() {
    let (_, code) = read(Path::new("src/mechanism/exact.rs"));
    assert!(code.contains("pub struct Exact") && rooms_named(&code).is_empty() && !code.contains("super::"), "{code}");
}

#[test]
fn the_map_lists_every_room_in_the_order_of_the_walk() {
    let map = fs::read_to_string("src/lib.rs").expect("the map");
    let listed: Vec<&str> = map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(listed, WALK);
}

#[test]
fn an_import_against_the_walk_is_found() {
    assert!(rooms_named("use crate::sink::Sink;").contains("sink"));
    assert!(rooms_named("use crate::{clock::Timestamp, ledger};").contains("ledger"));
    assert!(!is_allowed("mechanism", "ledger"));
    assert!(!is_allowed("window", "config"));
    assert!(is_allowed("pipeline", "sink"));
}

/// A module, by its path from the root of the crate.
type Module = Vec<String>;

fn module(path: &Path) -> Module {
    let inside = path.strip_prefix("src").expect("a source file").with_extension("");
    let mut segments: Module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    segments.pop_if(|last| last == "mod" || last == "lib");
    segments
}

/// Words, `::` and single signs.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !token.trim().is_empty() {
            found.push(token);
        }
        rest = after;
    }
    found
}

/// The paths of one `use` tree or path expression that begins at `at`, and where it ends.
fn paths<'a>(tokens: &[&'a str], mut at: usize, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        if *token == "{" {
            while !["}", ";"].contains(tokens.get(at).unwrap_or(&";")) {
                at = paths(tokens, at + 1, &path, found);
            }
            return at + 1;
        }
        path.push(token);
        if tokens.get(at + 1) != Some(&"::") {
            break;
        }
        at += 2;
    }
    found.push(path);
    while !["}", ",", ";"].contains(tokens.get(at).unwrap_or(&";")) {
        at += 1;
    }
    at
}

/// What the program of `module` imports. A parent that only re-exports its children does not import them; whoever takes
/// something from a parent imports the parent, re-exported or not.
fn imports(module: &Module, code: &str, known: &BTreeSet<Module>) -> BTreeSet<Module> {
    let tokens = tokens(code);
    let mut found = BTreeSet::new();
    let mut end_of_use = 0;
    for (at, token) in tokens.iter().enumerate() {
        let mut named = Vec::new();
        let is_use = *token == "use";
        if is_use {
            end_of_use = paths(&tokens, at + 1, &[], &mut named);
        } else if at < end_of_use {
            continue;
        } else if tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::") {
            let words = tokens[at..].chunks(2).take_while(|pair| pair.get(1) == Some(&"::"));
            named.push(words.map(|pair| pair[0]).collect());
        }
        let is_reexport = is_use && at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
        for path in named {
            let mut base = module.clone();
            let up = path.iter().take_while(|part| **part == "super").count();
            let rest = match path.first() {
                Some(&"crate") => {
                    base.clear();
                    &path[1..]
                }
                Some(&"self") => &path[1..],
                _ => {
                    base.truncate(module.len().saturating_sub(up));
                    &path[up..]
                }
            };
            base.extend(rest.iter().map(|part| (*part).to_owned()));
            while !base.is_empty() && !known.contains(&base) {
                base.pop();
            }
            let is_child = base.len() > module.len() && base.starts_with(module);
            if !base.is_empty() && base != *module && !(is_reexport && is_child) {
                found.insert(base);
            }
        }
    }
    found
}

/// Groups of modules that reach each other, by what each of them imports.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for to in edges.get(&next).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let all: BTreeMap<&Module, BTreeSet<Module>> = edges.keys().map(|module| (module, reached(module))).collect();
    let group = |module: &Module| -> Vec<String> {
        let back = |to: &&Module| all.get(to).is_some_and(|reached| reached.contains(module));
        all[module].iter().filter(back).map(|module| module.join("::")).collect()
    };
    let groups: BTreeSet<Vec<String>> = edges.keys().map(group).filter(|group| group.len() > 1).collect();
    groups.into_iter().collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let programs: BTreeMap<Module, String> = files.iter().map(|path| (module(path), read(path).1)).collect();
    let known: BTreeSet<Module> = programs.keys().cloned().collect();
    let edges: BTreeMap<_, _> =
        programs.iter().map(|(module, code)| (module.clone(), imports(module, code, &known))).collect();
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 500, "the imports were found");
    let found = circles(&edges);
    let shown: Vec<String> = found.iter().map(|group| group.join(" ")).collect();
    assert!(found.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| -> Module { name.split("::").map(str::to_owned).collect() };
    let programs = [
        ("a", "mod b; mod c; pub use b::B; use crate::d::{self, e::E};"),
        ("a::b", "use super::c::{C, D as F}; fn f() { crate::d::g() }"),
        ("a::c", "pub fn h() -> super::b::B { todo }"),
        ("d", "use std::fmt;"),
        ("d::e", "use super::Thing;"),
    ];
    let known: BTreeSet<Module> = programs.iter().map(|(name, _)| module(name)).collect();
    let edges: BTreeMap<_, _> =
        programs.iter().map(|(name, code)| (module(name), imports(&module(name), code, &known))).collect();
    assert_eq!(edges[&module("a")], BTreeSet::from([module("d"), module("d::e")]));
    assert_eq!(edges[&module("a::b")], BTreeSet::from([module("a::c"), module("d")]));
    assert_eq!(edges[&module("d::e")], BTreeSet::from([module("d")]));
    assert_eq!(circles(&edges), [["a::b", "a::c"]]);
}
