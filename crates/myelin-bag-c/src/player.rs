//! Recordings that are played.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_bag::player::{Control, PlayError, Played};
use myelin_bag::{Player, Recording, Time};

use crate::error::{
    Failure, MYELIN_BAG_NOTHING, MYELIN_BAG_OK, content, enter, myelin_bag_code, setting,
};
use crate::input::{self, sized};

/// Publishes a recording, at the times at which it was published.
pub struct myelin_player {
    control: Control,
    state: Mutex<State>,
}

enum State {
    Stands(Box<Player>),
    Plays(JoinHandle<Run>),
    /// Its thread has failed.
    Gone,
}

type Run = (Box<Player>, Result<Played, PlayError>);

/// What is played, and how. Patterns have `*` and `?`. Places are ns from the begin of the recording.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_player_options {
    /// sizeof(struct myelin_player_options): MYELIN_BAG_INIT(myelin_player_options).
    pub size: usize,
    /// Names or patterns of topics; none: all.
    pub topics: *const *const c_char,
    pub topic_count: usize,
    /// Names or patterns of topics that are left out.
    pub exclude: *const *const c_char,
    pub exclude_count: usize,
    /// Pairs of a name in the recording and a name under which it is published, one after the other.
    pub rename: *const *const c_char,
    pub rename_count: usize,
    /// How many times as fast as it was recorded; 0: 1.
    pub rate: f64,
    /// Where it begins.
    pub start_ns: u64,
    /// Where it ends; 0: at the end.
    pub end_ns: u64,
    /// How many times a second the time is published on `/clock`; 0: it is not.
    pub clock_hz: f64,
    /// The name of its node; NULL: player.
    pub node: *const c_char,
    /// The folder of sockets; NULL: MYELIN_RUNTIME_DIR, or the default.
    pub runtime_dir: *const c_char,
    /// The domain plus 1; 0: MYELIN_DOMAIN, or 0.
    pub domain_plus_1: u32,
    /// Whether it begins again at the end.
    pub repeat: bool,
    /// Whether it waits for reliable subscribers, however slow they are.
    pub wait_for_slow: bool,
    /// Whether the times of the record count, and not those of publication.
    pub by_log_time: bool,
}

/// How far a player is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_player_status_fields {
    /// MYELIN_BAG_INIT(myelin_player_status_fields).
    pub size: usize,
    /// Where it is, where it begins and where it ends, in ns since 1970.
    pub position_ns: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub rate: f64,
    /// Messages that it has published.
    pub messages: u64,
    pub is_paused: bool,
}

/// What was published.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_played {
    /// sizeof(struct myelin_played): MYELIN_BAG_INIT(myelin_played).
    pub size: usize,
    pub messages: u64,
    pub bytes: u64,
    pub duration_ns: u64,
    /// How late messages were published.
    pub lateness_p50_ns: u64,
    pub lateness_p99_ns: u64,
    pub lateness_max_ns: u64,
    /// By how much it took longer than planned, because this host could not keep up.
    pub delayed_ns: u64,
    /// How many times a reliable subscriber was late and was not waited for.
    pub passed_over: u64,
    /// Messages that are no samples of their type, and were left out.
    pub unfit: u64,
    /// Parts of the files that cannot be read, and were left out.
    pub unreadable: u64,
    /// How many times it began again.
    pub repeats: u64,
}

sized!(myelin_player_options, myelin_player_status_fields, myelin_played);

/// Opens a recording, a file or a folder of files, and its publishers. Nothing is published before
/// `myelin_player_play`. Options may be NULL.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_open(
    path: *const c_char,
    options: *const myelin_player_options,
    player: *mut *mut myelin_player,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let path = input::required(path, "path")?;
        let options = input::read(options)?;
        let by = if options.by_log_time { Time::Log } else { Time::Publish };
        let recording = Recording::open([path])?;
        let (name, folder) = (
            input::optional(options.node, "node's name")?,
            input::optional(options.runtime_dir, "runtime_dir")?,
        );
        let node = input::node(name, "player", options.domain_plus_1, folder)?;
        let mut builder = Player::builder(&node).repeat(options.repeat).by(by);
        builder = builder.wait_for_slow(options.wait_for_slow);
        for pattern in input::list(options.topics, options.topic_count, "topic")? {
            builder = builder.topic(pattern);
        }
        for pattern in input::list(options.exclude, options.exclude_count, "excluded topic")? {
            builder = builder.exclude(pattern);
        }
        let names = input::list(options.rename, options.rename_count, "name")?;
        for pair in names.chunks(2) {
            let [from, to] = pair else { return Err(setting("rename has no pairs of names")) };
            builder = builder.rename(from, to);
        }
        if options.rate != 0.0 {
            builder = builder.rate(options.rate);
        }
        if options.clock_hz != 0.0 {
            builder = builder.clock_hz(options.clock_hz);
        }
        if options.start_ns > 0 || options.end_ns > 0 {
            let (begin_ns, _) = recording.times(by)?;
            builder = builder.start_ns(begin_ns.saturating_add(options.start_ns));
            if options.end_ns > 0 {
                builder = builder.end_ns(begin_ns.saturating_add(options.end_ns));
            }
        }
        let opened = Box::new(builder.open(recording)?);
        let (control, state) = (opened.control(), Mutex::new(State::Stands(opened)));
        input::give(player, "player", myelin_player { control, state })?;
        Ok(MYELIN_BAG_OK)
    })
}

/// Starts to play, or goes on if it is paused. Returns at once.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_play(player: *mut myelin_player) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let player = input::object(player, "player")?;
        if !player.start()? {
            player.control.resume();
        }
        Ok(MYELIN_BAG_OK)
    })
}

/// Stands still, until `myelin_player_play`; before it, it stands still at the begin.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_pause(player: *mut myelin_player) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let player = input::object(player, "player")?;
        player.control.pause();
        player.start().map(|_| MYELIN_BAG_OK)
    })
}

/// Pauses, and publishes the next message.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_step(player: *mut myelin_player) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let player = input::object(player, "player")?;
        player.control.step();
        player.start().map(|_| MYELIN_BAG_OK)
    })
}

/// Goes to a place, in ns from the begin of what is played; it is paused or plays as before.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_seek(
    player: *mut myelin_player,
    to_ns: u64,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let control = &input::object(player, "player")?.control;
        control.seek(control.status().begin_ns.saturating_add(to_ns));
        Ok(MYELIN_BAG_OK)
    })
}

/// Plays so many times as fast as it was recorded.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_set_rate(
    player: *mut myelin_player,
    rate: f64,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        if !(rate > 0.0 && rate <= RATE_MAX) {
            return Err(setting(format!(
                "the rate is {rate}; use a number above 0, at most {RATE_MAX}"
            )));
        }
        input::object(player, "player")?.control.set_rate(rate);
        Ok(MYELIN_BAG_OK)
    })
}

/// How far it is.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_status(
    player: *mut myelin_player,
    status: *mut myelin_player_status_fields,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let it = input::object(player, "player")?.control.status();
        let fields = myelin_player_status_fields {
            size: 0,
            position_ns: it.position_ns,
            begin_ns: it.begin_ns,
            end_ns: it.end_ns,
            rate: it.rate,
            messages: it.messages,
            is_paused: it.is_paused,
        };
        input::write(status, fields)?;
        Ok(MYELIN_BAG_OK)
    })
}

/// Waits for the end; MYELIN_BAG_NOTHING if the limit is over. What was published may be NULL.
/// `myelin_player_play` plays it once more.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_wait(
    player: *mut myelin_player,
    limit_ns: u64,
    played: *mut myelin_played,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let Some(it) = input::object(player, "player")?.wait(input::limit(limit_ns))? else {
            return Ok(MYELIN_BAG_NOTHING);
        };
        if !played.is_null() {
            input::write(played, fields(&it))?;
        }
        Ok(MYELIN_BAG_OK)
    })
}

/// Waits until a topic, or with NULL all topics together, have so many subscribers;
/// MYELIN_BAG_NOTHING if the limit is over. Call it before `myelin_player_play`.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_wait_for_subscribers(
    player: *mut myelin_player,
    topic: *const c_char,
    count: usize,
    limit_ns: u64,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let topic = input::optional(topic, "topic")?;
        let player = input::object(player, "player")?;
        let State::Stands(player) = &*player.state() else {
            return Err(setting("the player plays already; wait for subscribers before"));
        };
        if let Some(name) = topic.filter(|name| !player.topics().any(|it| it == *name)) {
            return Err(setting(format!("this player has no topic {name:?}")));
        }
        match player.wait_for_subscribers(topic, count, input::limit(limit_ns)) {
            true => Ok(MYELIN_BAG_OK),
            false => Ok(MYELIN_BAG_NOTHING),
        }
    })
}

/// Ends it and its publishers, and closes the handle.
///
/// # Safety
/// Pointers are NULL or valid; nobody uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_player_close(player: *mut myelin_player) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let player = *input::take_back(player, "player")?;
        player.control.stop();
        if let State::Plays(thread) = player.state.into_inner().unwrap_or(State::Gone) {
            drop(thread.join());
        }
        Ok(MYELIN_BAG_OK)
    })
}

impl myelin_player {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts its thread; false if it runs already.
    fn start(&self) -> Result<bool, Failure> {
        let mut state = self.state();
        let mut player = match std::mem::replace(&mut *state, State::Gone) {
            State::Stands(player) => player,
            State::Gone => return Err(gone()),
            plays => {
                *state = plays;
                return Ok(false);
            }
        };
        let thread = std::thread::Builder::new().name("myelin-play".to_owned());
        let thread = thread.spawn(move || {
            let played = player.run();
            (player, played)
        })?;
        *state = State::Plays(thread);
        Ok(true)
    }

    fn wait(&self, limit: Duration) -> Result<Option<Played>, Failure> {
        let begun = Instant::now();
        loop {
            let mut state = self.state();
            match &*state {
                State::Plays(thread) if thread.is_finished() => {
                    let ended = std::mem::replace(&mut *state, State::Gone);
                    let State::Plays(thread) = ended else { return Err(gone()) };
                    let (player, played) = thread.join().map_err(|_| gone())?;
                    *state = State::Stands(player);
                    return Ok(Some(played?));
                }
                State::Plays(_) => {}
                State::Stands(_) => {
                    return Err(setting(
                        "the player does not play; call myelin_player_play before",
                    ));
                }
                State::Gone => return Err(gone()),
            }
            drop(state);
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

fn gone() -> Failure {
    content("the player has failed; open another one")
}

fn fields(it: &Played) -> myelin_played {
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let late = it.lateness;
    myelin_played {
        size: 0,
        messages: it.messages,
        bytes: it.bytes,
        duration_ns: ns(it.duration),
        lateness_p50_ns: late.map_or(0, |it| it.p50_ns),
        lateness_p99_ns: late.map_or(0, |it| it.p99_ns),
        lateness_max_ns: late.map_or(0, |it| it.max_ns),
        delayed_ns: ns(it.delayed),
        passed_over: it.passed_over,
        unfit: it.unfit,
        unreadable: it.unreadable,
        repeats: it.repeats,
    }
}

const RATE_MAX: f64 = 1e6;
const LOOK: Duration = Duration::from_millis(5);
