//! The C and C++ API, by programs of these languages.

mod support;

use std::process::Command;

use myelin::{Bool, LayoutHash, PlainData};
use support::{Place, crate_folder, end, library, said};

#[test]
fn each_part_in_c_does_what_the_header_says() {
    let place = Place::new();
    let program = place.compile("tests/programs/parts.c", &[]);
    assert_eq!(place.run(program, &[]), "all parts\n");
}

#[test]
fn each_part_in_cpp_does_what_the_header_says() {
    for standard in ["-std=c++17", "-std=c++20"] {
        let place = Place::new();
        let program = place.compile("tests/programs/parts.cpp", &[standard]);
        let output = end(place.start(program, &[]));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said(output), "all parts\n", "{standard}");
        for thrown in ["on_sample: it threw: odd;", "on_request: it threw: something"] {
            assert_eq!(errors.matches(thrown).count(), 1, "{errors}");
        }
    }
}

/// For programs that include it with `-I`.
#[test]
fn the_headers_have_no_warnings() {
    let strict =
        "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror";
    for (compiler, header, language, standards) in [
        ("cc", "myelin.h", "c", &["gnu11", "c11", "c2x"][..]),
        ("c++", "myelin.hpp", "c++", &["c++17", "c++20", "c++2b"]),
    ] {
        for standard in standards {
            let options =
                strict.split(' ').filter(|it| compiler == "c++" || *it != "-Wold-style-cast");
            let status = Command::new(compiler)
                .args(options)
                .args([format!("-std={standard}"), format!("-x{language}"), "-fsyntax-only".into()])
                .args(["-include", header, "/dev/null", "-I"])
                .arg(crate_folder().join("include"))
                .status();
            assert!(status.unwrap().success(), "{header} as {standard}");
        }
    }
}

/// The programs and the code of the headers in them; the library itself is not instrumented.
#[test]
fn the_sanitizers_find_nothing_in_the_programs() {
    for source in ["tests/programs/parts.c", "tests/programs/parts.cpp", "tests/programs/older.c"] {
        let place = Place::new();
        let options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
        let program = place.compile(source, &options);
        assert_ne!(place.run(program, &[]), "", "{source}");
    }
}

/// The programs together with the library.
#[test]
fn valgrind_finds_nothing_in_the_programs() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind: apt-get install valgrind");
        return;
    }
    for source in ["tests/programs/parts.c", "tests/programs/parts.cpp", "tests/programs/older.c"] {
        let place = Place::new();
        let program = place.compile(source, &["-g"]);
        let leaks = ["--leak-check=full", "--errors-for-leak-kinds=definite"];
        // All threads get turns, because some of them spin.
        let options = ["-q", "--error-exitcode=9", "--fair-sched=yes"];
        let arguments = [&options[..], &leaks, &[program.to_str().unwrap()]].concat();
        assert_ne!(place.run("valgrind", &arguments), "", "{source}");
    }
}

/// The guarantees of the header about threads that a program needs for its own memory. The thread
/// sanitizer, with which `scripts/sanitize c` runs this, checks them.
#[test]
fn writes_of_threads_are_visible_after_a_wait_and_a_close() {
    let place = Place::new();
    let program = place.compile("tests/programs/threads.c", &[]);
    assert_eq!(place.run(program, &[]), "all threads\n");
}

/// Each new thread needs the loader's lock before it begins, and the lock is held meanwhile.
#[test]
fn a_plug_in_opens_and_closes_a_node_while_it_is_loaded_and_unloaded() {
    let place = Place::new();
    // Without unique symbols, because the loader never unloads a library that has them.
    let options = ["-shared", "-fPIC", "-fno-gnu-unique"];
    let plug_in = place.compile("tests/programs/plug_in.cpp", &options);
    let host = place.compile("tests/programs/plug_in_host.c", &["-Wl,--as-needed"]);
    assert_eq!(place.run(host, &[plug_in.to_str().unwrap()]), "all rounds\n");
}

#[test]
fn functions_for_signal_handlers_do_not_allocate() {
    let place = Place::new();
    let program = place.compile("tests/programs/signals.c", &[]);
    assert_eq!(place.run(program, &[]), "all signals\n");
}

#[test]
fn inherited_handles_are_harmless_in_a_forked_child() {
    for source in ["tests/programs/fork.c", "tests/programs/fork.cpp"] {
        let place = Place::new();
        let program = place.compile(source, &[]);
        assert_eq!(place.run(program, &[]), "all forks\n", "{source}");
    }
}

#[test]
fn handles_can_be_closed_in_any_order_and_context() {
    for source in ["tests/programs/ends.c", "tests/programs/ends.cpp"] {
        let place = Place::new();
        let program = place.compile(source, &[]);
        assert_eq!(place.run(program, &[]), "all ends\n", "{source}");
    }
}

/// Each for `MYELIN_TORTURE_S`, by default a second.
#[test]
fn sixteen_threads_make_random_calls() {
    for source in ["tests/programs/torture.c", "tests/programs/torture.cpp"] {
        let place = Place::new();
        let program = place.compile(source, &[]);
        assert_eq!(place.run(program, &[]), "all threads\n", "{source}");
    }
}

#[test]
fn a_program_of_an_older_or_a_newer_header_works() {
    let place = Place::new();
    let program = place.compile("tests/programs/older.c", &[]);
    assert_eq!(place.run(program, &[]), "older and newer\n");
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Inner {
    at: [[f32; 2]; 3],
    closed: Bool,
    _pad: [u8; 7],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Outer {
    big: i64,
    inner: [Inner; 2],
    name: [u8; 16],
    tail: [i16; 4],
}

#[test]
fn the_same_fields_make_the_same_hash_in_all_languages() {
    let hashes = [
        LayoutHash::of_slice::<u8>(),
        f64::LAYOUT_HASH,
        <[[u16; 5]; 2]>::LAYOUT_HASH,
        Outer::LAYOUT_HASH,
        LayoutHash::of_slice::<Inner>(),
        LayoutHash::of_header_slice::<Inner, Outer>(),
    ];
    let rust: String = hashes.iter().map(|hash| format!("{hash}\n")).collect();
    for source in ["tests/programs/hashes.c", "tests/programs/hashes.cpp"] {
        let place = Place::new();
        let program = place.compile(source, &[]);
        assert_eq!(place.run(program, &[]), rust, "{source}");
    }
}

/// The symbols of the header, each with the version that added it, and no others.
#[test]
fn the_library_exports_what_the_header_declares() {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only"]).arg(library().join("libmyelin.so"));
    let listed = said(nm.output().expect("nm: apt-get install binutils"));
    let symbols = listed.lines().filter_map(|line| line.split_whitespace().last());
    let (versions, mut functions): (Vec<_>, Vec<_>) =
        symbols.partition(|symbol| symbol.starts_with("MYELIN_"));
    functions.sort_unstable();
    let header = std::fs::read_to_string(crate_folder().join("include/myelin.h")).unwrap();
    let mut declared: Vec<_> = header
        .lines()
        .filter(|line| !line.starts_with(['/', ' ', '#', '}']) && line.contains('('))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("myelin_"))
        .map(|name| format!("{name}@@MYELIN_0.1"))
        .collect();
    declared.sort_unstable();
    assert_eq!(versions, ["MYELIN_0.1"]);
    assert!(declared.len() > 50, "{declared:?}");
    assert_eq!(functions, declared);
}

/// A C++ program that would send data that is not plain does not compile, and the compiler says
/// why; nor does a program that would publish or own an object twice.
#[test]
fn invalid_programs_do_not_compile() {
    let with_loan = |act: &str| {
        format!(
            "struct S {{ int a; }}; MYELIN_STRUCT(S, a)
             void use(myelin::Publisher<S> publisher, myelin::Loan<S> loan) {{ {act} }}"
        )
    };
    let unmoved = with_loan("std::move(loan).publish().value(); loan.publish().value();");
    let copied = with_loan("auto again = loan;");
    let two = with_loan("auto again = publisher;");
    let with_image = |act: &str| {
        format!(
            "struct S {{ int a; }}; MYELIN_STRUCT(S, a)
             using Image = myelin::HeaderSlice<S, unsigned char>;
             void use(myelin::Publisher<Image> publisher, myelin::Client<S, Image> client,
                      myelin::Request<S, Image> request, myelin::RequestLoan<S, S> asked,
                      myelin::ReplyLoan<S> reply, myelin::Subscriber<S> subscriber,
                      myelin::Server<S, S> server, myelin::Publisher<S> single,
                      myelin::Node node) {{ {act} }}"
        )
    };
    let header_slice = "do not lie together to be copied: write them into a loan";
    let images = [
        ("publisher.publish_copy(S{1}).value();", header_slice),
        ("request.reply(S{1}).value();", header_slice),
        ("publisher.loan().value();", "a slice has a length"),
        ("publisher.reserve(3).value();", "a slice has a length"),
        ("request.loan().value();", "a slice has a length"),
        ("single.loan(3).value();", "a value has no length"),
        ("client.loan(3).value();", "a value has no length"),
        ("asked.send().value();", "std::move(loan).send()"),
        ("reply.send().value();", "std::move(loan).send()"),
        ("subscriber.on_sample([](const auto &) {}).value();", "std::move(subscriber).on_sample"),
        ("server.on_request([](auto) {}).value();", "std::move(server).on_request"),
        ("auto &topic = node.topic<S>(\"t\").depth(2);", "non-const lvalue reference"),
    ]
    .map(|(act, reason)| (with_image(act), reason));
    let wrong = [
        (unmoved.as_str(), "std::move(loan).publish()"),
        (&copied, "deleted function"),
        (&two, "deleted function"),
        ("struct S { int *p; }; MYELIN_STRUCT(S, p)", "a pointer means nothing"),
        ("struct S { char c; int i; }; MYELIN_STRUCT(S, c, i)", "has padding"),
        ("struct S { int a, b; }; MYELIN_STRUCT(S, a)", "does not name"),
        ("struct S { int a, b; }; MYELIN_STRUCT(S, b, a)", "in another order than the struct"),
        ("struct S { int a, b; }; MYELIN_STRUCT(S, a, a)", "in another order than the struct"),
        (
            "namespace robot { struct S { int a; }; MYELIN_STRUCT(S, a) } using robot::S;",
            "belongs behind the end of all namespaces",
        ),
        ("struct S { std::string s; }; MYELIN_STRUCT(S, s)", "trivially copyable"),
        ("struct S { int a; };", "with MYELIN_STRUCT"),
    ];
    let images = images.iter().map(|(code, reason)| (code.as_str(), *reason));
    for (code, reason) in wrong.into_iter().chain(images) {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("wrong.cpp");
        let text = format!(
            "#include <myelin.hpp>\n#include <string>\n{code}\nauto hash = myelin::layout_hash<S>();\n"
        );
        std::fs::write(&source, text).unwrap();
        let compiled = Command::new("c++")
            .args(["-std=c++17", "-fsyntax-only", "-I"])
            .arg(crate_folder().join("include"))
            .arg(&source)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&compiled.stderr);
        assert!(!compiled.status.success() && error.contains(reason), "{code}: {error}");
    }
}
