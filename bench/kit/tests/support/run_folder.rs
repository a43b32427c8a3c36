//! The files of a middleware that leaves some in `/dev/shm`, where its driver puts them into a
//! folder of the run (`run_folder.rs`): nothing stays, even if roles are killed. Each of these
//! tests must run alone.

use std::fs::{self, File};
use std::path::Path;

use myelin_bench_kit::protocol::Prepare;

use super::{Pair, clean};

/// A driver, and the prefix of its runs' folders.
pub struct RunFolders {
    pub executable: &'static str,
    pub prefix: &'static str,
}

impl RunFolders {
    pub fn are_gone_when_the_lab_dies_after_a_role_was_killed(&self, prepare: &Prepare) {
        let mut pair = Pair::endless(Path::new(self.executable), prepare);
        pair.ping.kill();
        pair.pong.hang_up();
        pair.pong.expect_end();
        self.expect_none();
    }

    pub fn are_removed_by_cleaning_unless_a_role_lives(&self, prepare: &Prepare) {
        let mut dead = Pair::endless(Path::new(self.executable), prepare);
        dead.ping.kill();
        dead.pong.kill();
        assert_ne!(self.names(), NONE, "the middleware's memory has names");
        let mut living = Pair::endless(Path::new(self.executable), prepare);
        clean(Path::new(self.executable));
        assert_eq!(self.names().len(), 1, "of the living");
        living.ping_samples.await_first();
        living.hang_up();
        self.expect_none();
    }

    /// Works without the middleware, too: `file` is a file that it leaves in a folder, `others` a
    /// file of another program.
    pub fn of_a_fake_are_removed_when_nobody_lives(&self, file: &str, others: &str) {
        let runs = ["dead", "living"].map(|run| Path::new(MEMORY).join(self.name(run)));
        let files = runs.each_ref().map(|run| run.join(file));
        for file in &files {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, [0; 640]).unwrap();
        }
        let [dead, living] = runs.map(|run| File::create(run.join("alive")).unwrap());
        drop(dead);
        living.lock_shared().unwrap();
        let others = Path::new(MEMORY).join(others);
        fs::write(&others, [0; 640]).unwrap();
        clean(Path::new(self.executable));
        assert_eq!(self.names(), [self.name("living")]);
        assert!(files[1].exists());
        assert!(others.exists(), "somebody's own");
        // Also of a child of another test that has not begun its own program yet.
        living.unlock().unwrap();
        drop(living);
        clean(Path::new(self.executable));
        self.expect_none();
        fs::remove_file(others).unwrap();
    }

    pub fn expect_none(&self) {
        assert_eq!(self.names(), NONE);
    }

    fn name(&self, run: &str) -> String {
        format!("{}{run}", self.prefix)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(MEMORY).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        names.filter(|name| name.starts_with(self.prefix)).collect()
    }
}

const MEMORY: &str = "/dev/shm";
const NONE: [String; 0] = [];
