//! Compiles the adaptor against the ROS 2 that `ROS2_PREFIX` names: an installation, or a Python
//! environment with its wheels. Without a usable one the driver is built without ROS 2 and says
//! what to do; the build never fails for that.
//!
//! rcl is loaded, not linked, because the middleware of a run is known only when it begins. rclcpp,
//! which wheels lack, is linked if it exists. The driver contains their paths, since the libraries
//! in wheels are not in the loader's folders.

use std::path::{Path, PathBuf};

use myelin_bench_build::installation::Installation;
use myelin_bench_build::{adaptor, driver, table};

fn main() {
    driver(|| ROS2.build(|prefix| Ros2::find(prefix)?.compile()));
}

/// An installation of ROS 2.
struct Ros2 {
    prefix: PathBuf,
    /// Folders of libraries, its own first.
    folders: Vec<PathBuf>,
}

impl Ros2 {
    fn find(prefix: &Path) -> Result<Self, String> {
        println!("cargo:rerun-if-changed={}", prefix.join("include").display());
        let prefix = prefix.to_owned();
        for package in PACKAGES {
            if !prefix.join("include").join(package).is_dir() {
                return Err(format!("no include/{package} there"));
            }
        }
        let mut folders = vec![prefix.join("lib")];
        folders.extend(wheels(&prefix.join("lib")));
        Ok(Ros2 { prefix, folders })
    }

    fn compile(&self) -> Result<(), String> {
        let mut build = adaptor::compiler("c++17");
        build.files(["src/link.cpp", "src/rcl.cpp", "src/library.cpp"]);
        let has_rclcpp = self.prefix.join("include/rclcpp").is_dir();
        if has_rclcpp {
            build.file("src/rclcpp.cpp").define("WITH_RCLCPP", None);
        }
        for package in entries(&self.prefix.join("include")) {
            adaptor::include_system(&mut build, &package);
        }
        let folders: Vec<String> =
            self.folders.iter().map(|folder| folder.display().to_string()).collect();
        build.define("ROS2_LIBRARIES", format!("{:?}", folders.join(":")).as_str());
        adaptor::compile(&mut build, ADAPTOR)?;
        let mut texts = vec![("VERSION", self.version())];
        if !has_rclcpp {
            let missing = format!("no rclcpp in {}: {NO_RCLCPP}", self.prefix.display());
            texts.push(("MISSING_RCLCPP", missing));
        }
        table::compile(
            &texts.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>(),
        );
        adaptor::link(ADAPTOR);
        if has_rclcpp {
            println!("cargo:rustc-link-search=native={}", self.folders[0].display());
            let is_there = |name: &str| self.folders[0].join(format!("lib{name}.so")).exists();
            for name in LINKED.into_iter().filter(|name| is_there(name)) {
                println!("cargo:rustc-link-lib={name}");
            }
            // The loader finds the libraries that they need.
            println!("cargo:rustc-link-arg-bins=-Wl,--allow-shlib-undefined");
        }
        println!("cargo:rustc-link-lib=stdc++");
        println!("cargo:rustc-link-lib=dl");
        // The old kind of tag, which also applies to the libraries that a library needs.
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags");
        for folder in &folders {
            println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{folder}");
        }
        Ok(())
    }

    /// The version of rcl's package.
    fn version(&self) -> String {
        let text = std::fs::read_to_string(self.prefix.join("share/rcl/package.xml"));
        let text = text.unwrap_or_default();
        let version = text.split_once("<version>").and_then(|(_, rest)| rest.split_once('<'));
        version.map_or("of an unknown version", |(version, _)| version.trim()).to_owned()
    }
}

/// The folders of libraries that wheels contain.
fn wheels(library: &Path) -> Vec<PathBuf> {
    let is_named = |path: &Path, start: &str, end: &str| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    let pythons = entries(library).into_iter().filter(|path| is_named(path, "python3", ""));
    let packages = pythons.flat_map(|python| entries(&python.join("site-packages")));
    packages.filter(|path| is_named(path, "ros_", ".libs")).collect()
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

const PACKAGES: [&str; 4] = ["rcl", "rmw", "std_msgs", "sensor_msgs"];
/// The libraries that rclcpp's headers call; not every version has all of them.
const LINKED: [&str; 9] = [
    "rclcpp",
    "libstatistics_collector",
    "statistics_msgs__rosidl_typesupport_cpp",
    "std_msgs__rosidl_typesupport_cpp",
    "sensor_msgs__rosidl_typesupport_cpp",
    "rcl",
    "rmw",
    "rcutils",
    "tracetools",
];
const NO_RCLCPP: &str = "set ROS2_PREFIX to an installation (/opt/ros/jazzy) when building Myelin";
const ADAPTOR: &str = "myelin_ros2_link";
const ROS2: Installation = Installation {
    middleware: "ROS 2",
    variable: "ROS2_PREFIX",
    absent: "not built in: set ROS2_PREFIX to an installation (/opt/ros/jazzy), or \
    to an environment with its wheels (bench/drivers/ros2/README.md), when building Myelin",
    remedy: "see bench/drivers/ros2/README.md, and build Myelin again",
};
