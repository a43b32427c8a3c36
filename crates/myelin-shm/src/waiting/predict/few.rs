//! A few numbers without an allocation: predicting must not allocate while samples come.

use std::ops::{Deref, DerefMut};

/// Up to `N` values of `T`; more are an error of the caller's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Few<T, const N: usize> {
    values: [T; N],
    count: usize,
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Few { values: [T::default(); N], count: 0 }
    }
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    pub(super) fn push(&mut self, value: T) {
        self.values[self.count] = value;
        self.count += 1;
    }

    /// Adds a value to a history, newest last: if it is full, the oldest is dropped.
    pub(super) fn shift(&mut self, value: T) {
        if self.count == N {
            self.keep_last(N - 1);
        }
        self.push(value);
    }

    pub(super) fn keep_last(&mut self, count: usize) {
        self.values.copy_within(self.count - count..self.count, 0);
        self.count = count;
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut few = Few::default();
        values.into_iter().for_each(|value| few.push(value));
        few
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[..self.count]
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[..self.count]
    }
}

/// The value below which `share` of `values` lie; `None` if there are none.
pub(super) fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let at = ((values.len() as f64 * share) as usize).min(values.len().checked_sub(1)?);
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_keeps_the_newest() {
        let mut few: Few<u64, 3> = [1, 2, 3].into_iter().collect();
        few.shift(4);
        assert_eq!(*few, [2, 3, 4]);
        few.keep_last(1);
        assert_eq!(*few, [4]);
    }

    #[test]
    fn a_quantile_is_a_value_of_the_sample() {
        assert_eq!(quantile(&mut [], 0.5), None);
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 1.0), Some(3.0));
    }
}
