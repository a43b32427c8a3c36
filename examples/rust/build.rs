//! Makes a function of each block of Rust in the docs, for `tests/docs.rs` to compile.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Its blocks are parts of the programs in `examples/`: `tests/guide.rs` compares them.
const PIECES: &str = "guide.md";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    let mut pages = vec![root.join("README.md")];
    find_pages(&root.join("docs"), &mut pages);
    pages.sort();
    let (mut functions, mut count) = (String::new(), 0);
    for page in pages.iter().filter(|page| !page.ends_with(PIECES)) {
        println!("cargo:rerun-if-changed={}", page.display());
        let text = std::fs::read_to_string(page).expect("a page");
        for block in text.split("\n```").skip(1).step_by(2) {
            let Some(lines) = block.strip_prefix("rust") else { continue };
            let (_, lines) = lines.split_once('\n').expect("lines");
            count += 1;
            let page = page.file_name().expect("a name").to_string_lossy();
            writeln!(functions, "/// Of {page}.\nmod block_{count} {{\n{}}}\n", module(lines))
                .expect("text");
        }
    }
    writeln!(functions, "const BLOCKS: u32 = {count};").expect("text");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(folder.join("docs.rs"), functions).expect("the folder is there");
}

fn module(block: &str) -> String {
    if block.contains("fn main()") {
        return format!("{block}\n");
    }
    let contexts = CONTEXTS.iter().filter(|(of, _)| block.contains(of));
    let context: String = contexts.map(|(_, context)| *context).collect();
    let is_list =
        block.lines().all(|line| !line.split("//").next().unwrap_or(line).contains([';', '{']));
    let body = if is_list { block.lines().map(statement).collect() } else { block.to_string() };
    format!(
        "use super::*;\nfn block(node: &Node) -> Result<(), Box<dyn std::error::Error>> {{\n{context}\n\
         {body}\n#[allow(unreachable_code)]\nOk(())\n}}\n"
    )
}

/// A line of a list of expressions.
fn statement(line: &str) -> String {
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    format!("{code}; // {comment}\n")
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find_pages(&path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

/// The context that a block assumes, by a part of the block.
const CONTEXTS: &[(&str, &str)] = &[
    (
        "publisher.loan(width * height)",
        "let (publisher, camera) = (node.topic::<(Frame, [u8])>(\"image\").publisher()?, Camera);
         let (width, height) = (4, 2);",
    ),
    ("camera.read_into(&mut pixels)", "let camera = Camera;"),
    ("let image = sample.decode()?", "use myelin_ros::{RosNode, sensor_msgs::Image};"),
    (
        "battery.encode_to_vec()",
        "struct Battery;
         impl Battery { fn encode_to_vec(&self) -> Vec<u8> { Vec::new() } }
         let battery = Battery;",
    ),
    ("let clock = if simulated", "use myelin::Clock; let simulated = true;"),
    ("struct Gripper<'a>", "use myelin_ros::std_msgs::Header;"),
    (
        "cdr::encode(&path",
        "use myelin_ros::cdr::{self, Text};
         let topic = node.topic::<[u8]>(\"path\");
         let (publisher, mut subscriber) = (topic.publisher()?, topic.subscriber()?);
         let sample = subscriber.take()?.ok_or(\"none\")?;
         let path = Path { name: Text::from(\"way\"), distances: vec![1.0] };",
    ),
];
