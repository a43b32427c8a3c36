//! Compares the C ABI of both libraries with `abi.txt`, which has the ABI of 0.1.0 and all later
//! additions. So a program built with an older header works with this library
//! (docs/reference/compatibility.md).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Fails if something has changed that a program may have been built with, or if something new is
/// not listed. `MYELIN_WRITE=1 cargo test -p myelin-c --test abi` lists new things; it never lists
/// a change.
#[test]
fn a_program_of_an_older_header_works() {
    compare(&MYELIN);
}

#[test]
fn a_program_of_an_older_header_of_recordings_works() {
    compare(&BAG);
}

fn compare(library: &Library) {
    let path = library.path("abi.txt");
    let read = || fs::read_to_string(&path).unwrap_or_default();
    let now = Abi::of_header(library);
    let broken = now.breaks(&Abi::parse(&read()));
    assert!(
        broken.is_empty(),
        "programs that were built with 0.1 no longer work; a break needs a new soname \
         (docs/reference/compatibility.md):\n{}",
        broken.join("\n")
    );
    let now = now.text();
    if env::var_os("MYELIN_WRITE").is_some() {
        fs::write(&path, &now).unwrap();
    }
    assert!(read() == now, "MYELIN_WRITE=1 cargo test -p myelin-c --test abi adds to abi.txt");
}

/// A library, by its folder.
struct Library {
    folder: &'static str,
    /// Of its files.
    name: &'static str,
    /// A macro that is a constant.
    forever: &'static str,
    /// The fewest structs, constants and functions that are read.
    least: [usize; 3],
}

const MYELIN: Library =
    Library { folder: ".", name: "myelin", forever: "MYELIN_FOREVER", least: [11, 21, 51] };
const BAG: Library = Library {
    folder: "../myelin-bag-c",
    name: "myelin_bag",
    forever: "MYELIN_BAG_FOREVER",
    least: [8, 9, 23],
};

impl Library {
    fn path(&self, file: &str) -> PathBuf {
        Path::new(FOLDER).join(self.folder).join(file)
    }
}

#[test]
fn each_kind_of_abi_break_is_detected() {
    let old = "struct grows 16\nmember grows.size 0 8\nmember grows.kind 8 4\n\
               struct fixed 8\nmember fixed.kind 0 4\n\
               constant OK 0\nfunction int f(int)\nsymbol f 0.1\n";
    let breaks = |from: &str, to: &str| {
        assert!(old.contains(from), "{from}");
        Abi::parse(&old.replace(from, to)).breaks(&Abi::parse(old))
    };
    let is_fine = |from, to| assert_eq!(breaks(from, to), [""; 0]);
    let is_broken = |from, to| assert_eq!(breaks(from, to).len(), 1, "{from} -> {to}");
    is_fine("grows 16\n", "grows 24\nmember grows.more 16 8\n");
    is_fine("constant OK 0\n", "constant OK 0\nconstant NEW 1\n");
    is_fine("struct fixed 8", "struct other 4\nmember other.one 0 4\nstruct fixed 8");
    // In an older program this is padding, which may hold any bytes.
    is_broken("grows.kind 8 4\n", "grows.kind 8 4\nmember grows.more 12 4\n");
    is_broken("grows.kind 8 4\n", "grows.kind 12 4\n");
    is_broken("grows.kind 8 4\n", "grows.kind 8 8\n");
    is_broken("grows 16\n", "grows 12\n");
    is_broken("struct fixed 8\n", "struct fixed 16\n");
    is_broken("fixed.kind 0 4\n", "fixed.kind 0 4\nmember fixed.more 4 4\n");
    is_broken("constant OK 0\n", "constant OK 1\n");
    is_broken("function int f(int)\n", "function int f(long)\n");
    is_broken("symbol f 0.1\n", "symbol f 0.2\n");
    is_broken("symbol f 0.1\n", "");
}

/// Copies of the programs that call everything, from 0.1.0.
#[test]
fn source_for_the_headers_of_0_1_0_compiles() {
    let sources = Path::new(FOLDER).join("tests/programs/0.1.0");
    for (compiler, standard, name) in
        [("cc", "-std=gnu11", "parts.c"), ("c++", "-std=c++17", "parts.cpp")]
    {
        let mut command = Command::new(compiler);
        command.args([standard, "-fsyntax-only", "-I"]).arg(Path::new(FOLDER).join("include"));
        let compiled = command.arg(sources.join(name)).output();
        let compiled =
            compiled.unwrap_or_else(|error| panic!("{compiler}: {error}; apt-get install g++"));
        assert!(
            compiled.status.success(),
            "programs of users do not compile any more (docs/reference/compatibility.md):\n{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
    }
}

/// Everything about the library that is compiled into a program, by name.
struct Abi {
    /// Bytes of each struct.
    structs: BTreeMap<String, usize>,
    /// Offset and bytes of each member, by struct and member.
    members: BTreeMap<(String, String), [usize; 2]>,
    /// Values of constants, types of functions, versions of symbols: nothing about them may change.
    others: BTreeMap<String, String>,
}

impl Abi {
    /// From the C compiler, which reads the header, and from the list of symbols.
    fn of_header(library: &Library) -> Abi {
        let read = |file: String| fs::read_to_string(library.path(&file)).unwrap();
        let name = library.name;
        let header = Header::parse(&read(format!("include/{name}.h")), library);
        let mut text = run(&header.program(name), library);
        for (name, declaration) in &header.declarations {
            text += &format!("function {name} {declaration}\n");
        }
        let mut version = String::new();
        for line in read(format!("lib{name}.map")).lines().map(str::trim) {
            match line.strip_suffix(" {") {
                Some(begins) => version = begins.to_owned(),
                None if line.starts_with("myelin_") => {
                    text += &format!("symbol {} {version}\n", line.trim_end_matches(';'));
                }
                None => {}
            }
        }
        Abi::parse(&text)
    }

    fn parse(text: &str) -> Abi {
        let mut abi =
            Abi { structs: BTreeMap::new(), members: BTreeMap::new(), others: BTreeMap::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (kind, rest) = line.split_once(' ').unwrap();
            let (name, value) = rest.split_once(' ').unwrap();
            let mut numbers = value.split(' ').map(|number| number.parse().unwrap());
            match kind {
                "struct" => {
                    abi.structs.insert(name.to_owned(), numbers.next().unwrap());
                }
                "member" => {
                    let (of, member) = name.split_once('.').unwrap();
                    let place = [(); 2].map(|()| numbers.next().unwrap());
                    abi.members.insert((of.to_owned(), member.to_owned()), place);
                }
                _ => {
                    abi.others.insert(format!("{kind} {name}"), value.to_owned());
                }
            }
        }
        abi
    }

    /// The reasons why programs that were built with `old` do not work with this one.
    fn breaks(&self, old: &Abi) -> Vec<String> {
        let mut broken = Vec::new();
        for (name, bytes) in &old.structs {
            let now = self.structs.get(name);
            let is_fine = now.is_some_and(|now| now == bytes || (now > bytes && old.grows(name)));
            if !is_fine {
                broken.push(format!("struct {name} has {now:?} bytes, and had {bytes}"));
            }
        }
        for (of, place) in &old.members {
            let now = self.members.get(of);
            if now != Some(place) {
                broken.push(format!("member {of:?}: offset and bytes {now:?}, were {place:?}"));
            }
        }
        for ((name, member), [offset, _]) in &self.members {
            let is_new = !old.members.contains_key(&(name.clone(), member.clone()));
            let Some(bytes) = old.structs.get(name).filter(|_| is_new) else { continue };
            if !old.grows(name) || offset < bytes {
                broken.push(format!("member {name}.{member} is new and inside the old struct"));
            }
        }
        for (name, value) in &old.others {
            let now = self.others.get(name);
            if now != Some(value) {
                broken.push(format!("{name}: {now:?}, was {value}"));
            }
        }
        broken
    }

    /// Whether a struct begins with its size, and so may grow.
    fn grows(&self, name: &str) -> bool {
        self.members.get(&(name.to_owned(), "size".to_owned())) == Some(&[0, size_of::<usize>()])
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# The C ABI: bytes of structs, offset and bytes of members, constants, functions, versions of \
             symbols.\n# New lines may come; no line changes. tests/abi.rs compares.\n",
        );
        for (name, bytes) in &self.structs {
            text += &format!("struct {name} {bytes}\n");
            let members = self.members.iter().filter(|((of, _), _)| of == name);
            let mut members: Vec<_> = members.map(|((_, member), place)| (place, member)).collect();
            members.sort();
            for ([offset, bytes], member) in members {
                text += &format!("member {name}.{member} {offset} {bytes}\n");
            }
        }
        self.others.iter().for_each(|(name, value)| text += &format!("{name} {value}\n"));
        text
    }
}

/// The declarations of a header.
struct Header {
    /// Each struct with its members.
    structs: Vec<(String, Vec<String>)>,
    constants: Vec<String>,
    /// Functions, and types of callbacks, with their whole declarations.
    declarations: Vec<(String, String)>,
}

impl Header {
    fn parse(text: &str, library: &Library) -> Header {
        let mut header = Header {
            structs: vec![],
            constants: vec![library.forever.into()],
            declarations: vec![],
        };
        // The header in one line, without comments, macros and conditions.
        let mut code = String::new();
        let mut continues = false;
        for line in text.split_once("*/").unwrap().1.lines() {
            let is_macro = continues || line.starts_with('#');
            continues = is_macro && line.ends_with('\\');
            let is_comment = line.trim_start().starts_with("//") || line.starts_with("/*");
            let is_border = line.contains("extern \"C\"");
            if !is_macro && !is_comment && !is_border {
                code = code + line + " ";
            }
        }
        while let Some(end) = code.find([';', '{']) {
            let begins = code[..end].split_whitespace().collect::<Vec<_>>().join(" ");
            let is_block = code[end..].starts_with('{');
            code.drain(..=end);
            if !is_block {
                let name =
                    begins.split(['(', ' ', '*', ')']).find(|it| it.starts_with("myelin_on_"));
                let name = name.filter(|_| begins.starts_with("typedef"));
                let called = begins.split('(').next().unwrap().rsplit([' ', '*']).next();
                let called = called.filter(|it| begins.contains('(') && it.starts_with("myelin_"));
                let named = name.or(called).map(|name| (name.to_owned(), begins.clone()));
                header.declarations.extend(named);
                continue;
            }
            let end = code.find('}').unwrap();
            let inside: String = code.drain(..=end).collect();
            let inside = inside.trim_end_matches('}');
            if let Some(name) = begins.strip_prefix("typedef struct ") {
                let members = inside.split(';').map(str::trim).filter(|member| !member.is_empty());
                let name_of = |member: &str| {
                    let (before, _) = member.split_once('[').unwrap_or((member, ""));
                    before.rsplit([' ', '*']).next().unwrap().to_owned()
                };
                header.structs.push((name.to_owned(), members.map(name_of).collect()));
            } else if begins.starts_with("enum ") {
                let constants = inside.split(',').map(str::trim).filter(|it| !it.is_empty());
                let name_of = |it: &str| it.split(' ').next().unwrap().to_owned();
                header.constants.extend(constants.map(name_of));
            }
        }
        let read = [header.structs.len(), header.constants.len(), header.declarations.len()];
        let is_read = read.iter().zip(library.least).all(|(read, least)| *read >= least);
        assert!(is_read, "the header is not read: {read:?}");
        header
    }

    /// A program that prints sizes, offsets and values as the compiler sees them.
    fn program(&self, name: &str) -> String {
        let mut code = format!("#include <{name}.h>\n#include <stdio.h>\nint main(void) {{\n");
        for (name, members) in &self.structs {
            code += &format!("printf(\"struct {name} %zu\\n\", sizeof(struct {name}));\n");
            for member in members {
                code += &format!(
                    "printf(\"member {name}.{member} %zu %zu\\n\", offsetof(struct {name}, {member}), \
                     sizeof ((struct {name} *)0)->{member});\n"
                );
            }
        }
        for name in &self.constants {
            code += &format!("printf(\"constant {name} %lld\\n\", (long long){name});\n");
        }
        code + "}\n"
    }
}

/// The output of a program in C.
fn run(code: &str, library: &Library) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("abi.c"), folder.path().join("abi"));
    fs::write(&source, code).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"]);
    cc.arg(library.path("include")).arg(&source).arg("-o").arg(&program);
    let compiled = cc.output().unwrap_or_else(|error| panic!("cc: {error}; apt-get install gcc"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success(), "{}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
