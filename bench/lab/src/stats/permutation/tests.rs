//! Counts the false alarms against the stated rate, and checks that true differences are still
//! found.

use rand::RngExt;

use super::*;

fn normal(random: &mut StdRng) -> f64 {
    (0..12).map(|_| random.random_range(-0.5..0.5)).sum()
}

/// Distributions of the runs of a cell.
const LAWS: [fn(&mut StdRng) -> f64; 8] = [
    |random| 0.005 * normal(random),
    |random| 0.02 * normal(random),
    |random| 0.1 * normal(random),
    // Skewed, with a long tail.
    |random| 0.02 * normal(random).exp(),
    // A random half of the runs takes much longer.
    |random| if random.random_bool(0.5) { 0.4 } else { 0.0 } + 0.005 * normal(random),
    // One in ten runs is disturbed.
    |random| {
        let disturbed = if random.random_bool(0.1) { random.random_range(0.0..1.0) } else { 0.0 };
        disturbed + 0.01 * normal(random)
    },
    // Whole steps, like memory in pages.
    |random| 0.002 * f64::from(random.random_range(0..4)),
    // All runs equal, like memory that is allocated at the start.
    |_| 3.0,
];

/// Comparisons without a difference; `shared` is the standard deviation of a disturbance that all
/// cells of a run share.
fn family(random: &mut StdRng, size: usize, runs: [usize; 2], shared: f64) -> Vec<Sides> {
    let blocks: Vec<f64> = (0..runs[0] + runs[1]).map(|_| shared * normal(random)).collect();
    let cell = |at: usize| {
        let all: Vec<f64> = blocks.iter().map(|block| block + LAWS[at % 8](random)).collect();
        Sides { a: all[..runs[0]].to_vec(), b: all[runs[0]..].to_vec() }
    };
    (0..size).map(cell).collect()
}

fn alarms(trials: usize, size: usize, runs: [usize; 2], shared: f64) -> usize {
    let mut random = StdRng::seed_from_u64(size as u64 ^ runs[0] as u64);
    let is_alarm = |_: &usize| {
        let family = family(&mut random, size, runs, shared);
        test(&family).iter().any(|chance| chance.p_adjusted <= RATE)
    };
    (0..trials).filter(is_alarm).count()
}

#[test]
fn equal_systems_differ_no_more_often_than_the_error_rate() {
    // 200 trials at 5 %: at most 10 are expected; 21 or more would have a probability of two in a
    // thousand.
    for (size, runs, shared) in
        [(4, [5, 5], 0.0), (40, [5, 5], 0.0), (40, [5, 5], 0.03), (24, [5, 6], 0.0)]
    {
        let found = alarms(200, size, runs, shared);
        assert!(found <= 20, "{found} of 200 with {size} comparisons of {runs:?} runs");
    }
    // With random divisions instead of all.
    let found = alarms(40, 8, [9, 9], 0.0);
    assert!(found <= 8, "{found} of 40 with nine runs");
}

/// Equal systems, each compared with the one that happens to be the fastest. Returns how often one
/// was called different if the family has only these comparisons, and if it has all pairs.
fn alarms_against_the_best(trials: usize, systems: usize, runs: usize) -> [usize; 2] {
    let mut random = StdRng::seed_from_u64(8);
    let mut found = [0; 2];
    for _ in 0..trials {
        let mut system = || (0..runs).map(|_| 0.02 * normal(&mut random)).collect::<Vec<f64>>();
        let all: Vec<Vec<f64>> = (0..systems).map(|_| system()).collect();
        let middle = |at: &usize| crate::stats::median(all[*at].clone()).unwrap();
        let best = (0..systems).min_by(|a, b| middle(a).total_cmp(&middle(b))).unwrap();
        let pairs = (0..systems).flat_map(|a| (a + 1..systems).map(move |b| [a, b]));
        let (told, others): (Vec<_>, Vec<_>) = pairs.partition(|pair| pair.contains(&best));
        let sides = |[a, b]: &[usize; 2]| Sides { a: all[*a].clone(), b: all[*b].clone() };
        let family: Vec<Sides> = told.iter().chain(&others).map(sides).collect();
        for (found, family) in found.iter_mut().zip([&family[..told.len()], &family]) {
            let chances = test(family);
            // An alarm of the larger family is one of the smaller, too.
            if chances[..told.len()].iter().all(|it| it.p_adjusted > RATE) {
                break;
            }
            *found += 1;
        }
    }
    found
}

#[test]
fn comparisons_with_the_best_need_all_pairs_in_the_family() {
    // The runs that made it the best are the ones that it is compared by. 10 of 200 may be alarms.
    let [alone, all] = alarms_against_the_best(200, 16, 7);
    assert!(all <= 10, "{all} of 200 with all pairs");
    assert!(alone > 14, "{alone} of 200 with only the pairs of the best");
}

#[test]
fn a_difference_of_ten_per_cent_is_found_and_its_direction() {
    let mut random = StdRng::seed_from_u64(4);
    for factor in [1.1f64, 1.0 / 1.1] {
        let is_found = |_: &usize| {
            let mut family = family(&mut random, 40, [5, 5], 0.0);
            family[0].b.iter_mut().for_each(|run| *run += factor.ln());
            let chance = test(&family)[0];
            chance.p_adjusted <= RATE && chance.statistic.signum() == factor.ln().signum()
        };
        let found = (0..100).filter(is_found).count();
        assert!(found >= 95, "{found} of 100");
    }
}

#[test]
fn a_large_difference_does_not_hide_smaller_ones() {
    let mut random = StdRng::seed_from_u64(5);
    let mut family: Vec<Sides> = (0..30)
        .map(|_| Sides {
            a: (0..5).map(|_| 0.005 * normal(&mut random)).collect(),
            b: (0..5).map(|_| 0.005 * normal(&mut random)).collect(),
        })
        .collect();
    for sides in &mut family[..20] {
        sides.b.iter_mut().for_each(|run| *run += 0.2);
    }
    let found = test(&family);
    assert!(found[..20].iter().all(|chance| chance.p_adjusted <= RATE), "{found:?}");
    assert!(found[20..].iter().all(|chance| chance.p_adjusted > RATE), "{found:?}");
}

#[test]
fn equal_differences_do_not_count_against_each_other() {
    let side = |value: f64| vec![value; 5];
    let family = vec![Sides { a: side(0.0), b: side(0.2) }; 100];
    assert!(test(&family).iter().all(|chance| chance.p_adjusted < 0.01));
    // If divisions of other comparisons reach as far, all but the first few may be chance.
    let mixed = Sides { a: vec![0.0, 0.0, 0.0, 0.2, 0.2], b: vec![0.2, 0.2, 0.2, 0.0, 0.0] };
    let found = test(&[family, vec![mixed; 100]].concat());
    let told = found.iter().filter(|chance| chance.p_adjusted <= RATE).count();
    assert!(told < 10, "{told}");
}

#[test]
fn the_trimmed_mean_has_its_winsorized_error() {
    let values: Vec<f64> = [-90.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 900.0].into();
    let (mean, error) = trimmed(&values, 2);
    assert_eq!(mean, 4.5);
    // 2, 2, 2, 3, 4, 5, 6, 7, 7, 7: squared deviations from 4.5 over 6 × 5.
    assert!((error - 42.5 / 30.0).abs() < 1e-12, "{error}");
    let (mean, error) = trimmed(&[1.0, 2.0, 3.0], 0);
    assert_eq!((mean, error), (2.0, 2.0 / 6.0));
}

#[test]
fn with_eight_runs_one_disturbed_run_hides_no_difference() {
    let mut random = StdRng::seed_from_u64(6);
    let mut is_found = |runs: usize| {
        let mut side = |offset: f64| -> Vec<f64> {
            let usual = std::iter::repeat_with(|| offset + 0.005 * normal(&mut random));
            usual.take(runs - 1).chain([offset + 1.0]).collect()
        };
        test(&[Sides { a: side(0.0), b: side(0.1) }])[0].p_adjusted <= RATE
    };
    assert!((0..20).all(|_| is_found(8)));
}

#[test]
fn a_test_of_one_comparison_is_that_of_fisher_and_pitman() {
    let apart = Sides { a: vec![0.0, 0.1, 0.2, 0.3, 0.4], b: vec![1.0, 1.1, 1.2, 1.3, 1.4] };
    let [chance] = test(&[apart])[..] else { panic!("one") };
    assert_eq!((chance.p, chance.p_adjusted), (2.0 / 252.0, 2.0 / 252.0));
    assert!(chance.statistic > 0.0);
    let equal = Sides { a: vec![1.0; 5], b: vec![1.0; 5] };
    assert_eq!(test(&[equal])[0].p, 1.0);
    assert_eq!(test(&[]), []);
}

#[test]
fn every_division_is_enumerated_once() {
    let mut seen = std::collections::BTreeSet::new();
    each_division(9, 4, &mut |chosen| assert!(seen.insert(chosen.to_vec())));
    assert_eq!(seen.len() as f64, divisions(9, 4));
    assert_eq!(divisions(14, 7), 3432.0);
}

#[test]
fn more_comparisons_need_more_runs() {
    let needed: Vec<usize> = [1, 6, 7, 448, 1000].map(runs_to_tell_any).into();
    assert_eq!(needed, [4, 5, 6, 9, 9]);
}

/// Comparisons without a difference, of sessions in which the machine is in a state that the cells
/// share more or less.
fn sessions(random: &mut StdRng, size: usize, sessions: [usize; 2]) -> Vec<Sides> {
    family(random, size, sessions, 0.1)
}

#[test]
fn equal_sessions_differ_no_more_often_than_the_error_rate() {
    for (size, number) in [(1, [5, 5]), (40, [5, 5]), (400, [5, 5]), (40, [5, 7]), (24, [9, 9])] {
        let mut random = StdRng::seed_from_u64(size as u64);
        let is_alarm = |_: &usize| {
            let family = sessions(&mut random, size, number);
            test_together(&family).iter().any(|chance| chance.p_adjusted <= RATE)
        };
        let trials = if size > 100 { 60 } else { 200 };
        let found = (0..trials).filter(is_alarm).count();
        // Of 200, 10 are expected at most; of 60, three.
        assert!(
            found <= if size > 100 { 9 } else { 20 },
            "{found} of {trials}, {size} comparisons"
        );
    }
}

#[test]
fn five_sessions_show_a_difference_among_hundreds() {
    let mut random = StdRng::seed_from_u64(5);
    let mut session = |_| {
        let state = 0.01 * normal(&mut random);
        (0..200).map(|_| state + 0.01 * normal(&mut random)).collect::<Vec<f64>>()
    };
    for factor in [1.15f64, 1.0 / 1.15] {
        let mut is_found = |_: &usize| {
            let all: Vec<_> = (0..10).map(&mut session).collect();
            let of = |at: usize, side: &[Vec<f64>]| side.iter().map(|it| it[at]).collect();
            let (a, b) = all.split_at(5);
            let sides = |at| Sides { a: of(at, a), b: of(at, b) };
            let mut family: Vec<Sides> = (0..200).map(sides).collect();
            family[0].b.iter_mut().for_each(|value| *value += factor.ln());
            let found = test_together(&family)[0];
            found.p_adjusted <= RATE && found.statistic.signum() == factor.ln().signum()
        };
        let found = (0..20).filter(&mut is_found).count();
        assert!(found >= 17, "{found} of 20");
    }
    assert_eq!(test_together(&[]), []);
}

#[test]
fn a_single_comparison_is_the_same_together_and_alone() {
    let mut random = StdRng::seed_from_u64(6);
    for number in [[5, 5], [5, 6], [6, 6]] {
        let family = family(&mut random, 1, number, 0.0);
        let (together, alone) = (test_together(&family)[0], test(&family)[0]);
        assert_eq!((together.p, together.statistic), (alone.p, alone.statistic), "{number:?}");
        assert_eq!(together.p_adjusted, together.p);
    }
}
