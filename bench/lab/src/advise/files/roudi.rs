//! RouDi's pools: those of the measured runs, with all sizes in one file, because a host has one
//! RouDi.

use std::collections::BTreeMap;

use minijinja::context;
use serde::Deserialize;

use super::{Advised, File, points, rendered};
use crate::lists::ascending;

/// The parts of a run's `roudi.toml` that are used here.
#[derive(Deserialize)]
struct Recorded {
    segment: Vec<Segment>,
}

#[derive(Deserialize)]
struct Segment {
    mempool: Vec<Pool>,
}

#[derive(Deserialize)]
struct Pool {
    /// Bytes of a chunk without iceoryx's header, but with the middleware's header.
    size: u32,
    count: u32,
}

/// Number of chunks of one size, and their purpose.
#[derive(Default)]
struct Pooled<'a> {
    count: u32,
    of: Vec<&'a Advised<'a>>,
}

/// The file; `None` if no advised system had pools.
pub(super) fn file(advised: &[Advised]) -> Result<Option<File>, String> {
    let mut pools: BTreeMap<u32, Pooled> = BTreeMap::new();
    for one in advised {
        let Some(text) = one.configuration.get(RECORDED) else { continue };
        let recorded: Recorded = toml::from_str(text).map_err(|error| {
            format!("{}: the recorded {RECORDED} cannot be read: {}", one.system, error.message())
        })?;
        for pool in recorded.segment.into_iter().flat_map(|segment| segment.mempool) {
            let pooled = pools.entry(pool.size).or_default();
            pooled.count = pooled.count.max(pool.count);
            pooled.of.push(one);
        }
    }
    let pools = merged(pools);
    if pools.is_empty() {
        return Ok(None);
    }
    let bytes = |(size, pooled): (&u32, &Pooled)| {
        (u64::from(*size) + CHUNK_HEADER_BYTES) * u64::from(pooled.count)
    };
    let mib = pools.iter().map(bytes).sum::<u64>().div_ceil(1 << 20);
    let rows = pools.iter().map(|(size, Pooled { count, of })| {
        let systems = ascending(of.iter().map(|one| one.system)).join(", ");
        context! { what => format!("{systems}: {}", points(of.iter().copied())), size, count }
    });
    let values = context! { mib, pools => rows.collect::<Vec<_>>() };
    let all = pools.values().flat_map(|pooled| &pooled.of).copied();
    Ok(Some(File {
        name: RECORDED.to_owned(),
        about: format!("pools of iceoryx for: {}", points(all)),
        usage: "iox-roudi -c …/roudi.toml".to_owned(),
        text: rendered(include_str!("templates/roudi.toml"), values),
    }))
}

/// Merges pools whose sizes differ by at most CycloneDDS's header, as programs use iceoryx directly
/// or below CycloneDDS. If there are still more pools than iceoryx allows, the smallest become part
/// of the next.
fn merged(pools: BTreeMap<u32, Pooled>) -> BTreeMap<u32, Pooled> {
    let mut kept: BTreeMap<u32, Pooled> = BTreeMap::new();
    for (size, mut pooled) in pools {
        let near = kept.last_entry().filter(|last| size - last.key() <= AROUND_BYTES);
        if let Some(smaller) = near.map(|last| last.remove()) {
            pooled.count = pooled.count.max(smaller.count);
            pooled.of.extend(smaller.of);
        }
        kept.insert(size, pooled);
    }
    while kept.len() > POOLS_MAX {
        let (_, smallest) = kept.pop_first().expect("there are more than none");
        let mut next = kept.first_entry().expect("there are more than one");
        let next = next.get_mut();
        next.count = next.count.saturating_add(smallest.count);
        next.of.extend(smallest.of);
    }
    kept
}

const RECORDED: &str = "roudi.toml";
/// Bytes of iceoryx's header; RouDi adds it to a pool's `size`.
const CHUNK_HEADER_BYTES: u64 = 40;
/// Bytes of CycloneDDS's header in a chunk, with its padding.
const AROUND_BYTES: u32 = 64;
/// iceoryx's limit MAX_NUMBER_OF_MEMPOOLS.
const POOLS_MAX: usize = 32;
