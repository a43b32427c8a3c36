//! Pause, step, seek, repeat, stop.

use std::thread::JoinHandle;

use myelin_bag::player::{Control, Played, PlayerBuilder};
use myelin_bag::{Player, Recording, Schema};

use crate::robot::{MS, Robot, SECOND, collect, next_numbers, numbers, wait_for};

struct Playing {
    control: Control,
    thread: JoinHandle<Played>,
}

fn start(builder: &PlayerBuilder, path: &std::path::Path) -> Playing {
    let mut player = builder.open(Recording::open([path]).unwrap()).unwrap();
    let control = player.control();
    Playing { control, thread: std::thread::spawn(move || player.run().unwrap()) }
}

#[test]
fn a_paused_player_steps_seeks_and_goes_on() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 200);
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let playing = start(&Player::builder(&robot.player).paused(true), &path);
    let control = &playing.control;
    control.step();
    control.step();
    assert_eq!(next_numbers(&samples, 2), [0, 1]);
    wait_for("the place of the second", || control.status().position_ns == SECOND + MS);
    assert!(samples.try_recv().is_err(), "it is paused");

    control.seek(SECOND + 100 * MS);
    control.step();
    assert_eq!(next_numbers(&samples, 1), [100]);
    control.seek(SECOND + 10 * MS);
    control.step();
    assert_eq!(next_numbers(&samples, 1), [10]);
    assert!(control.status().is_paused);

    control.set_rate(4.0);
    control.resume();
    assert_eq!(next_numbers(&samples, 189), (11..200).collect::<Vec<_>>());
    let played = playing.thread.join().unwrap();
    assert_eq!((played.messages, played.repeats, played.is_stopped), (193, 0, false));
    assert!(played.lateness.is_some());
    let status = control.status();
    assert_eq!((status.rate, status.is_paused, status.messages), (4.0, false, 193));
}

#[test]
fn start_and_end_select_a_part() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 100);
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let builder = Player::builder(&robot.player).start_ns(SECOND + 20 * MS);
    let playing = start(&builder.end_ns(SECOND + 23 * MS), &path);
    assert_eq!(playing.thread.join().unwrap().messages, 3);
    assert_eq!(next_numbers(&samples, 3), [20, 21, 22]);
}

#[test]
fn it_repeats_until_it_is_stopped() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 3);
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let playing = start(&Player::builder(&robot.player).repeat(true), &path);
    assert_eq!(next_numbers(&samples, 8), [0, 1, 2, 0, 1, 2, 0, 1]);
    playing.control.stop();
    let played = playing.thread.join().unwrap();
    assert!(played.is_stopped && played.repeats >= 2, "{played:?}");
}

#[test]
fn a_repeat_of_nothing_ends() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 3);
    let builder = Player::builder(&robot.player).repeat(true).start_ns(2 * SECOND);
    assert_eq!(start(&builder, &path).thread.join().unwrap().messages, 0);
}

#[test]
fn a_place_begins_with_the_latched_samples_before_it() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let qos =
        "- {history: keep_last, depth: 2, reliability: reliable, durability: transient_local}";
    let map = file.topic("map", &Schema::layout("u64"), Some(qos));
    let number = file.topic("number", &Schema::layout("u64"), None);
    for at in 0..10_u64 {
        file.write(&map, SECOND + at * SECOND, &(100 + at).to_ne_bytes());
        file.write(&number, SECOND + at * SECOND + MS, &at.to_ne_bytes());
    }
    let path = file.finish();
    let (_map, maps) = collect(&robot.node.topic::<u64>("map"));
    let (_number, numbers) = collect(&robot.node.topic::<u64>("number"));
    let builder = Player::builder(&robot.player).paused(true);
    let playing = start(&builder.start_ns(4 * SECOND), &path);
    // Published at 2 s and 3 s; those are the two that a late joiner would have got.
    assert_eq!(next_numbers(&maps, 2), [101, 102]);
    playing.control.seek(9 * SECOND);
    assert_eq!(next_numbers(&maps, 2), [106, 107]);
    playing.control.seek(5 * SECOND);
    assert_eq!(next_numbers(&maps, 2), [102, 103]);
    assert!(numbers.try_recv().is_err(), "only latched samples are brought up");
    // A late joiner gets the state of the place.
    let (_late, late) = collect(&robot.node.topic::<u64>("map").transient_local(2));
    assert_eq!(next_numbers(&late, 2), [102, 103]);
    playing.control.step();
    playing.control.step();
    assert_eq!(next_numbers(&maps, 1), [104]);
    assert_eq!(next_numbers(&numbers, 1), [4]);
    playing.control.stop();
    let played = playing.thread.join().unwrap();
    assert_eq!((played.messages, played.lateness), (8, None));
}

#[test]
fn subscribers_are_waited_for() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 3);
    let player = Player::builder(&robot.player).open(Recording::open([&path]).unwrap()).unwrap();
    let control = player.control();
    assert!(!player.wait_for_subscribers(None, 1, std::time::Duration::ZERO));
    let (_callback, _samples) = collect(&robot.node.topic::<u64>("number"));
    assert!(player.wait_for_subscribers(Some("number"), 1, crate::robot::WATCHDOG));
    control.stop();
    assert!(!player.wait_for_subscribers(None, 2, crate::robot::WATCHDOG), "it is stopped");
}
