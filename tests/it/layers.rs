//! The crates that `src` is to become: each module goes to one of them, and none imports a crate that is not below it. No files
//! import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates, each after those below it, whose names it may use.
const CRATES: [(&str, &[&str]); 11] = [
    ("synopsis", &[]),
    ("noise", &["synopsis"]),
    ("release", &["synopsis", "noise"]),
    ("functions", &["synopsis", "noise", "release"]),
    ("ledger", &["synopsis", "noise", "release"]),
    ("kafka", &["synopsis", "noise", "release", "ledger"]),
    ("worker", &["synopsis", "noise", "release", "ledger", "kafka"]),
    ("server", &["synopsis", "noise", "release", "ledger", "kafka", "worker"]),
    ("audit", &["synopsis", "noise", "release", "ledger", "kafka", "worker"]),
    ("config", &["synopsis", "noise", "release", "functions", "ledger", "kafka", "worker"]),
    (
        "program",
        &["synopsis", "noise", "release", "functions", "ledger", "kafka", "worker", "server", "audit", "config"],
    ),
];

/// Where each module goes: the longest path counts. A file that only names its children goes wherever they go.
const PLACES: [(&str, &str); 69] = [
    ("clock", "synopsis"),
    ("mechanism::calibrate::amount", "synopsis"),
    ("mechanism::fraction", "synopsis"),
    ("mechanism::law", "synopsis"),
    ("mechanism::price", "synopsis"),
    ("source::positions", "synopsis"),
    ("source::scalar", "synopsis"),
    ("source::times", "synopsis"),
    ("synopsis", "synopsis"),
    ("targets::adjacency", "synopsis"),
    ("targets::bandwidths", "synopsis"),
    ("targets::cell_kernel", "synopsis"),
    ("targets::cholesky", "synopsis"),
    ("targets::expression::error", "synopsis"),
    ("targets::expression::interval", "synopsis"),
    ("targets::expression::parse", "synopsis"),
    ("targets::expression::pointwise", "synopsis"),
    ("targets::machine::kernel", "synopsis"),
    ("targets::machine::loss", "synopsis"),
    ("targets::moments::grid", "synopsis"),
    ("targets::quadratic", "synopsis"),
    ("targets::sampler::distribution", "synopsis"),
    ("targets::shape", "synopsis"),
    ("targets::shape_error", "synopsis"),
    ("targets::whitened::points", "synopsis"),
    ("window::grid", "synopsis"),
    ("window::histogram", "synopsis"),
    ("accountant", "noise"),
    ("mechanism", "noise"),
    ("mechanism::choice", "release"),
    ("source::batch", "release"),
    ("source::broken", "release"),
    ("source::cells", "release"),
    ("source::columns", "release"),
    ("source::decode", "release"),
    ("source::found", "release"),
    ("source::rows", "release"),
    ("source::text", "release"),
    ("targets::blackbox::error", "release"),
    ("targets::builtin", "release"),
    ("targets::dequantized", "release"),
    ("targets::error", "release"),
    ("targets::lattice", "release"),
    ("targets::marginals", "release"),
    ("targets::sampler::error", "release"),
    ("targets::scaling", "release"),
    ("targets::sealed", "release"),
    ("targets::target", "release"),
    ("window", "release"),
    ("targets", "functions"),
    ("kafka::sealing", "ledger"),
    ("ledger", "ledger"),
    ("kafka", "kafka"),
    ("ledger::budget::guard", "kafka"),
    ("ledger::budget::topic", "kafka"),
    ("ledger::log::topic", "kafka"),
    ("ledger::witness::kafka", "kafka"),
    ("sink", "kafka"),
    ("source", "kafka"),
    ("metrics", "worker"),
    ("pipeline", "worker"),
    ("scale", "worker"),
    ("telemetry", "worker"),
    ("feed", "server"),
    ("serve", "server"),
    ("audit", "audit"),
    ("config", "config"),
    ("cli", "program"),
    ("main", "program"),
];

/// What functions make stands where only mechanisms can open it, in a file that imports nothing.
const EXACT: &str = "crates/noise/src/exact.rs";

/// Who may use what; a package that is not listed is free.
const PACKAGES: [(&str, &[&str]); 7] = [
    ("rdkafka", &["kafka", "worker", "server", "program"]),
    ("rusqlite", &["ledger"]),
    ("prometheus", &["worker", "audit"]),
    ("axum", &["server"]),
    ("tracing", &["kafka", "worker", "server", "audit", "program"]),
    ("parquet", &["kafka", "program"]),
    ("ureq", &["kafka"]),
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

/// The program text of a file before its tests, without comments.
fn program(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("it can be read");
    let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<&str> = program.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.join("\n")
}

/// The programs of all modules but those that are tests.
fn programs() -> BTreeMap<Module, String> {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let programs: BTreeMap<Module, String> = files.iter().map(|path| (module(path), program(path))).collect();
    programs.into_iter().filter(|(module, _)| module.last().is_none_or(|name| name != "tests")).collect()
}

/// The crate that a module goes to.
fn place(module: &[String]) -> Option<&'static str> {
    let longest = (1..=module.len()).rev().map(|length| module[..length].join("::"));
    longest.filter_map(|path| PLACES.iter().find(|(prefix, _)| *prefix == path)).map(|(_, place)| *place).next()
}

fn is_below(place: &str, above: &str) -> bool {
    place == above || CRATES.iter().any(|(name, below)| *name == above && below.contains(&place))
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

/// A path as it is written, and the name that it is imported under.
struct UsedPath<'a> {
    path: Vec<&'a str>,
    alias: &'a str,
}

/// The paths of one `use` tree that begins at `at`, and where it ends.
fn paths<'a>(tokens: &[&'a str], mut at: usize, before: &[&'a str], found: &mut Vec<UsedPath<'a>>) -> usize {
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
    let named = if tokens.get(at + 1) == Some(&"as") { at + 2 } else { at };
    let alias = match tokens.get(named) {
        Some(&"self") => path.iter().rev().nth(1).copied(),
        name => name.copied(),
    };
    found.push(UsedPath { path, alias: alias.unwrap_or_default() });
    while !["}", ",", ";"].contains(tokens.get(at).unwrap_or(&";")) {
        at += 1;
    }
    at
}

/// The path that begins at `at`.
fn path_at<'a>(tokens: &[&'a str], at: usize) -> Vec<&'a str> {
    let more = tokens[at + 1..].chunks(2).take_while(|pair| pair[0] == "::").filter_map(|pair| pair.get(1));
    std::iter::once(&tokens[at]).chain(more).copied().collect()
}

/// A path that a program names, from the root of the crate on, and the name that it gives it.
struct Named {
    path: Module,
    alias: String,
    is_use: bool,
    is_reexport: bool,
}

/// The paths that the program of `module` names.
fn named(module: &Module, code: &str) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut end_of_use = 0;
    for (at, token) in tokens.iter().enumerate() {
        let mut named = Vec::new();
        let is_use = *token == "use";
        if is_use {
            end_of_use = paths(&tokens, at + 1, &[], &mut named);
        } else if at < end_of_use {
            continue;
        } else if tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::") {
            named.push(UsedPath { path: path_at(&tokens, at), alias: "" });
        }
        let is_reexport = is_use && at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
        for UsedPath { path, alias } in named {
            let path = from_root(module, &path);
            found.push(Named { path, alias: alias.to_owned(), is_use, is_reexport });
        }
    }
    found
}

/// A path in `module` as one from the root of the crate.
fn from_root(module: &Module, path: &[&str]) -> Module {
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
    base.extend(rest.iter().filter(|part| **part != "self").map(|part| (*part).to_owned()));
    base
}

/// The module that a path leads into.
fn known_part(path: &[String], known: &BTreeSet<Module>) -> Module {
    let mut part = path.to_vec();
    while !part.is_empty() && !known.contains(&part) {
        part.pop();
    }
    part
}

/// What the program of `module` imports. A parent that only re-exports its children does not import them; whoever takes
/// something from a parent imports the parent, re-exported or not.
fn imports(module: &Module, code: &str, known: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for Named { mut path, is_use, is_reexport, .. } in named(module, code) {
        if !is_use {
            // A function, which may be called as a module is.
            path.pop();
        }
        let base = known_part(&path, known);
        let is_child = base.len() > module.len() && base.starts_with(module);
        if !base.is_empty() && base != *module && !(is_reexport && is_child) {
            found.insert(base);
        }
    }
    found
}

/// What a file says of names.
struct Source {
    /// What each imported name stands for.
    uses: BTreeMap<String, Module>,
    globs: Vec<Module>,
    defined: BTreeSet<String>,
    /// Whether there is more in it than the names of children.
    has_code: bool,
}

impl Source {
    fn of(module: &Module, code: &str) -> Self {
        let tokens = tokens(code);
        let all: Vec<Named> = named(module, code).into_iter().filter(|named| named.is_use).collect();
        let (globs, uses): (Vec<Named>, Vec<Named>) = all.into_iter().partition(|named| named.alias == "*");
        let defines = ["struct", "enum", "trait", "fn", "const", "static", "type", "union"];
        let defined = tokens.windows(2).filter(|pair| defines.contains(&pair[0])).map(|pair| pair[1].to_owned());
        let is_code =
            |statement: &[&str]| !statement.is_empty() && !statement.contains(&"use") && !statement.contains(&"mod");
        Source {
            uses: uses.into_iter().map(|named| (named.alias, named.path)).collect(),
            globs: globs
                .into_iter()
                .map(|mut named| {
                    named.path.pop();
                    named.path
                })
                .collect(),
            defined: defined.collect(),
            has_code: tokens.split(|token| *token == ";").any(is_code),
        }
    }
}

/// The module that defines what `path` names, through whatever re-exports it; `None` for what is not of this program.
fn definition(path: &[String], all: &BTreeMap<Module, Source>, steps: u32) -> Option<Module> {
    let within = (0..=path.len()).rev().map(|length| path[..length].to_vec()).find(|part| all.contains_key(part))?;
    let Some(name) = path.get(within.len()) else { return Some(within) };
    let source = &all[&within];
    if source.defined.contains(name) {
        return Some(within);
    }
    let left = steps.checked_sub(1)?;
    if let Some(target) = source.uses.get(name) {
        let whole = [target.as_slice(), &path[within.len() + 1..]].concat();
        return definition(&whole, all, left);
    }
    let through = |glob: &Module| definition(&[glob.as_slice(), std::slice::from_ref(name)].concat(), all, left);
    source.globs.iter().filter(|glob| **glob != within).find_map(through)
}

/// What `module` imports from a crate that is not below its own.
fn against_the_order(module: &Module, code: &str, all: &BTreeMap<Module, Source>) -> BTreeSet<String> {
    let Some(own) = place(module) else { return BTreeSet::from([format!("{module:?} goes to no crate")]) };
    let mut wrong = BTreeSet::new();
    for Named { path, .. } in named(module, code) {
        let Some(from) = definition(&path, all, 9) else { continue };
        let is_parent = !all[&from].has_code;
        if from.is_empty() || is_parent || place(&from).is_some_and(|place| is_below(place, own)) {
            continue;
        }
        let place = place(&from).unwrap_or("no crate");
        wrong.insert(format!("{own}: {} takes {} of {place}", module.join("::"), path.join("::")));
    }
    wrong
}

/// Methods that `module` gives to a type of another crate.
fn methods_of_others(module: &Module, code: &str, all: &BTreeMap<Module, Source>) -> BTreeSet<String> {
    let tokens = tokens(code);
    let mut wrong = BTreeSet::new();
    for at in
        (0..tokens.len()).filter(|at| tokens[*at] == "impl" && (*at == 0 || ["}", ";", "]"].contains(&tokens[at - 1])))
    {
        let header: Vec<&str> = tokens[at + 1..].iter().copied().take_while(|token| *token != "{").collect();
        let is_begin = |at: &usize| {
            header[*at].chars().all(|sign| sign.is_alphanumeric() || sign == '_')
                && (*at == 0 || header[at - 1] != "::")
        };
        let names = (0..header.len()).filter(is_begin).map(|at| from_root(module, &path_at(&header, at)));
        let places: Vec<_> = names.filter_map(|path| definition(&path, all, 9)).map(|module| place(&module)).collect();
        // A trait of a crate above may be for a type of one below, and the other way round.
        if !places.is_empty() && !places.contains(&place(module)) {
            wrong.insert(format!("{}: impl {}", module.join("::"), header.join(" ")));
        }
    }
    wrong
}

#[test]
fn a_crate_imports_only_crates_below_it() {
    let programs = programs();
    let all: BTreeMap<Module, Source> =
        programs.iter().map(|(module, code)| (module.clone(), Source::of(module, code))).collect();
    assert!(all.len() > 500 && all.values().filter(|source| source.has_code).count() > 400, "the source was found");
    let mut wrong = BTreeSet::new();
    for (module, code) in programs.iter().filter(|(module, _)| !module.is_empty() && all[*module].has_code) {
        wrong.extend(against_the_order(module, code, &all));
        wrong.extend(methods_of_others(module, code, &all));
        for (package, places) in PACKAGES {
            let is_used = code.contains(&format!("use {package}::")) || code.contains(&format!(" {package}::"));
            if is_used && !place(module).is_some_and(|place| places.contains(&place)) {
                wrong.insert(format!("{}: {:?} must not use {package}", module.join("::"), place(module)));
            }
        }
    }
    let shown: Vec<String> = wrong.into_iter().collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn every_place_is_that_of_a_module_and_the_crates_are_in_order() {
    let modules: BTreeSet<String> = programs().keys().map(|module| module.join("::")).collect();
    for (path, place) in PLACES {
        let is_there = modules.iter().any(|module| module == path || module.starts_with(&format!("{path}::")));
        assert!(is_there && CRATES.iter().any(|(name, _)| *name == place), "{path}: {place}");
    }
    for (at, (name, below)) in CRATES.iter().enumerate() {
        assert!(below.iter().all(|lower| CRATES[..at].iter().any(|(earlier, _)| earlier == lower)), "{name}");
    }
}

#[test]
fn exact_values_stand_in_a_file_that_imports_no_room() {
    let code = program(Path::new(EXACT));
    assert!(code.contains("pub struct Exact") && !code.contains("crate::") && !code.contains("super::"), "{code}");
}

#[test]
fn an_import_against_the_order_is_found() {
    let module = |name: &str| -> Module { name.split("::").map(str::to_owned).collect() };
    let programs = [
        (
            "clock",
            "use crate::sink::{File as Place, Sink}; impl Place { fn new() {} } impl From<Place> for Time {} struct Time;",
        ),
        ("sink", "mod file; pub use self::file::*; use crate::clock::Time; pub trait Sink {}"),
        ("sink::file", "pub struct File; impl crate::clock::Time { }"),
        ("synopsis", "pub use crate::clock::Time; fn f() { crate::sink::File::new(); std::fmt::f(); }"),
    ];
    let all: BTreeMap<Module, Source> =
        programs.iter().map(|(name, code)| (module(name), Source::of(&module(name), code))).collect();
    let wrong = |place: usize| {
        let (name, code) = programs[place];
        let mut wrong = against_the_order(&module(name), code, &all);
        wrong.extend(methods_of_others(&module(name), code, &all));
        wrong.into_iter().collect::<Vec<_>>()
    };
    let of_sink = "synopsis: clock takes sink::";
    assert_eq!(
        wrong(0),
        ["clock: impl Place".to_owned(), format!("{of_sink}File of kafka"), format!("{of_sink}Sink of kafka")]
    );
    assert!(wrong(1).is_empty(), "{:?}", wrong(1));
    assert_eq!(wrong(2), ["sink::file: impl crate :: clock :: Time"]);
    assert_eq!(wrong(3), ["synopsis: synopsis takes sink::File::new of kafka"]);
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
    let programs = programs();
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
