//! The promises of the API across hosts, with real CycloneDDS between two network namespaces. Each
//! role is this executable again; the test talks to it through pipes.

#[cfg(feature = "any")]
mod any;
mod delivery;
mod failures;
mod interfaces;
mod lane;
mod late;
mod load;
mod losses;
mod malformed;
mod matching;
mod routed;
mod security;
mod services;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/hosts.rs"]
mod two;

use myelin::{Event, Node};
use support::WATCHDOG;
use two::Hosts;

#[test]
fn the_other_side() {
    let Some(role) = two::role() else { return };
    match role.as_str() {
        "be_a_host" => two::be_a_host(),
        #[cfg(feature = "any")]
        "publish_unknown_types" => any::publish_unknown_types(),
        #[cfg(feature = "any")]
        "read_unknown_types" => any::read_unknown_types(),
        "fork_and_go_on" => failures::fork_and_go_on(),
        "publish_both" => delivery::publish_both(),
        "take_both" => delivery::take_both(),
        "greet" => delivery::greet(),
        "be_greeted" => delivery::be_greeted(),
        "publish_and_keep_the_last" => delivery::publish_and_keep_the_last(),
        "take_the_last" => delivery::take_the_last(),
        "publish_images" => delivery::publish_images(),
        "take_images" => delivery::take_images(),
        "publish_frames" => delivery::publish_frames(),
        "take_frames" => delivery::take_frames(),
        "publish_map" => delivery::publish_map(),
        "want_map" => delivery::want_map(),
        "want_no_map" => delivery::want_no_map(),
        "publish_elsewhere" => matching::publish_elsewhere(),
        "run_on_one_cpu" => interfaces::run_on_one_cpu(),
        "publish_shown" => matching::publish_shown(),
        "take_shown" => matching::take_shown(),
        "publish_less_than_requested" => matching::publish_less_than_requested(),
        "take_more_than_offered" => matching::take_more_than_offered(),
        "meet_nobody" => matching::meet_nobody(),
        "publish_on_its_host" => matching::publish_on_its_host(),
        "miss_what_stays_there" => matching::miss_what_stays_there(),
        "publish_through_a_cut" => failures::publish_through_a_cut(),
        "take_through_a_cut" => failures::take_through_a_cut(),
        "publish_until_killed" => failures::publish_until_killed(),
        "outlive_a_publisher" => failures::outlive_a_publisher(),
        "film" => failures::film(),
        "view" => failures::view(),
        "publish_to_the_vanished" => failures::publish_to_the_vanished(),
        "publish_to_the_vanished_link" => failures::publish_to_the_vanished_link(),
        "work_alone_then_publish" => interfaces::work_alone_then_publish(),
        "work_alone_then_take" => interfaces::work_alone_then_take(),
        "publish_map_early" => interfaces::publish_map_early(),
        "take_map_late" => interfaces::take_map_late(),
        "wait_for_the_named" => interfaces::wait_for_the_named(),
        "be_there" => interfaces::be_there(),
        "publish_for_long" => interfaces::publish_for_long(),
        "take_for_long" => interfaces::take_for_long(),
        "publish_mixed" => lane::publish_mixed(),
        "take_mixed" => lane::take_mixed(),
        "take_mixed_without_the_lane" => lane::take_mixed_without_the_lane(),
        "publish_at_the_pace_of_the_cable" => lane::publish_at_the_pace_of_the_cable(),
        "take_at_its_pace" => lane::take_at_its_pace(),
        "lose_large_samples" => lane::lose_large_samples(),
        "count_large_losses" => lane::count_large_losses(),
        "publish_broken" => lane::publish_broken(),
        "take_broken" => lane::take_broken(),
        "publish_patiently" => lane::publish_patiently(),
        "take_patiently" => lane::take_patiently(),
        "publish_until_missed_and_again" => lane::publish_until_missed_and_again(),
        "take_before_and_after_a_cut" => lane::take_before_and_after_a_cut(),
        "publish_large_past_the_stopped" => lane::publish_large_past_the_stopped(),
        "take_large_in_time" => lane::take_large_in_time(),
        "take_large_with_a_stop" => lane::take_large_with_a_stop(),
        "publish_large_until_killed" => lane::publish_large_until_killed(),
        "take_until_killed" => lane::take_until_killed(),
        "stay_matched" => load::stay_matched(),
        "take_all_cores" => load::take_all_cores(),
        "vanish" => failures::vanish(),
        "publish_integers" => matching::other_type::<u64>(),
        "take_doubles" => matching::other_type_taken(),
        "publish_past_the_late" => late::publish_past_the_late(),
        "publish_some_and_end" => late::publish_some_and_end(),
        "take_after_restarts" => late::take_after_restarts(),
        "publish_until_cancelled" => late::publish_until_cancelled(),
        "stand_still" => late::stand_still(),
        "take_in_time" => late::take_in_time(),
        "log_late" => late::log_late(),
        "publish_a_burst" => losses::publish_a_burst(),
        "take_a_burst" => losses::take_a_burst(),
        "publish_at_once" => losses::publish_at_once(),
        "take_on_one_core" => losses::take_on_one_core(),
        "publish_in_a_hurry" => losses::publish_in_a_hurry(),
        "take_slowly" => losses::take_slowly(),
        "publish_of_every_kind" => matching::publish_of_every_kind(),
        "take_of_every_kind" => matching::take_of_every_kind(),
        "publish_and_lose" => losses::publish_and_lose(),
        "serve_until_killed" => services::serve_until_killed(),
        "serve_until_told" => services::serve_until_told(),
        "call_a_service" => services::call_a_service(),
        "publish_and_stay" => routed::publish_and_stay(),
        "take_and_stay" => routed::take_and_stay(),
        "take_and_count_losses" => losses::take_and_count_losses(),
        "be_attacked" => malformed::be_attacked(),
        "be_a_decoy" => malformed::be_a_decoy(),
        "talk_under_attack" => malformed::talk_under_attack(),
        "send_malformed_packets" => malformed::send_malformed_packets(),
        "publish_secret" => security::publish_secret(),
        "take_secret" => security::take_secret(),
        "listen_to_the_wire" => security::listen_to_the_wire(),
        "publish_to_friends" => security::publish_to_friends(),
        "be_a_friend" => security::be_a_friend(),
        "be_refused" => security::be_refused(),
        "stay_and_be_replayed_to" => security::stay_and_be_replayed_to(),
        "record_and_replay" => security::record_and_replay(),
        "lose_a_friend" => security::lose_a_friend(),
        "stay_until_killed" => security::stay_until_killed(),
        "publish_without_end" => security::publish_without_end(),
        "exit_at_once" => security::exit_at_once(),
        "use_openssl_and_exit" => security::use_openssl_and_exit(),
        "have_few_rights" => security::have_few_rights(),
        "miss_one_without_rights" => security::miss_one_without_rights(),
        "forge_rights" => security::forge_rights(),
        "cannot_open" => security::cannot_open(),
        _ => panic!("{role}"),
    }
}

fn node(name: &str) -> Node {
    Node::builder(name).network(true).open().unwrap()
}

/// Runs both roles, the second one first and on the other host, and checks that nothing is left.
fn run(publisher: &str, taker: &str) {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run(taker);
    taker.hears("ready");
    let publisher = hosts.one.run(publisher);
    taker.ends();
    publisher.ends();
    nothing_is_left(&hosts);
}

fn nothing_is_left(hosts: &Hosts) {
    for host in [&hosts.one, &hosts.other] {
        assert!(host.leftovers().is_empty(), "{:?}", host.leftovers());
    }
}

fn unmatched(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Unmatched { pid: _, .. })).count()
}

const NUMBERS: u64 = 1_000;
