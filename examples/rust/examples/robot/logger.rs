//! A logger that loses nothing: it may start late, die and come back. It writes `robot.log` in the
//! current folder, with a record of [`RECORD_BYTES`] for each IMU sample: how many samples are
//! missing before it, as a `u64` in the machine's byte order, and the bytes of the sample.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use myelin::{Node, Sample, Wait};

use crate::common::{Failure, LOOK_AROUND, Source, Stop, report};
use crate::topics::{self, Imu, LogStatus};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    let log = Log::open();
    let mut log = log.map_err(|error| format!("{error}; start it where it may write {FILE}"))?;
    let mut imu = topics::imu(node).subscriber()?;
    imu.set_wait(Wait::Block); // it need not be fast, and should cost nothing
    let status = topics::log_status(node).publisher()?;
    let mut source = Source::default();
    let mut said = Instant::now();
    while !stop.is_set() {
        let mut next = imu.receive(LOOK_AROUND)?;
        while let Some(sample) = next {
            source.came_from(sample.publisher(), "logger", "imu");
            log.write(&sample)?;
            next = imu.take()?;
        }
        // Data in the file outlives this process.
        log.file.flush()?;
        report("logger", "imu", &imu.events());
        if said.elapsed() >= Duration::from_secs(1) {
            said = Instant::now();
            status.publish_copy(&LogStatus { written: log.written, lost: log.lost })?;
            println!("logger: {} written, {} lost ({})", log.written, log.lost, imu.lost());
        }
    }
    Ok(())
}

struct Log {
    file: BufWriter<File>,
    /// Life and number of the last record.
    last: Option<(u64, u64)>,
    written: u64,
    lost: u64,
}

impl Log {
    /// Goes on where the last life ended.
    fn open() -> std::io::Result<Log> {
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(FILE)?;
        // A logger that was killed during a write may have left a part of a record.
        let records = file.metadata()?.len() / RECORD_BYTES;
        file.set_len(records * RECORD_BYTES)?;
        let mut last = None;
        if records > 0 {
            let word_at = |at| {
                let mut word = [0; 8];
                file.read_exact_at(&mut word, (records - 1) * RECORD_BYTES + at)?;
                std::io::Result::Ok(u64::from_ne_bytes(word))
            };
            last = Some((word_at(LIFE_AT)?, word_at(NUMBER_AT)?));
        }
        Ok(Log { file: BufWriter::new(file), last, written: 0, lost: 0 })
    }

    fn write(&mut self, sample: &Sample<Imu>) -> std::io::Result<()> {
        // By the driver's numbers and not by `lost_before`: they stay valid when this process
        // restarts.
        let missing = match self.last {
            Some((life, last)) if life == sample.life => {
                if sample.number <= last {
                    return Ok(()); // history that the last life has written already
                }
                sample.number - last - 1
            }
            _ => sample.lost_before(),
        };
        self.file.write_all(&missing.to_ne_bytes())?;
        self.file.write_all(sample.as_bytes())?;
        if missing > 0 {
            println!("logger: imu: {missing} lost before number {}", sample.number);
        }
        self.last = Some((sample.life, sample.number));
        self.lost += missing;
        self.written += 1;
        Ok(())
    }
}

const FILE: &str = "robot.log";
const RECORD_BYTES: u64 = 8 + size_of::<Imu>() as u64;
const LIFE_AT: u64 = 8 + std::mem::offset_of!(Imu, life) as u64;
const NUMBER_AT: u64 = 8 + std::mem::offset_of!(Imu, number) as u64;
