// Columns of numbers from the short texts that `packed.rs` writes.
"use strict";

const PACKED_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const PACKED_UNKNOWN = -1000000, PACKED_ZERO = -999999, PACKED_STEPS = 1000;

/** Unpacks integers; each was written as its difference to the previous one. */
function integers(text) {
  const values = [];
  let before = 0, rest = 0, scale = 1;
  for (const digit of text) {
    const bits = PACKED_DIGITS.indexOf(digit);
    rest += (bits & 31) * scale;
    scale *= 32;
    if (bits & 32) continue;
    const size = Math.floor(rest / 2);
    before += rest % 2 ? -size : size;
    values.push(before);
    rest = 0;
    scale = 1;
  }
  return values;
}

/** Unpacks figures that were written as logarithms; null for unknown values. */
const logarithms = (text) => integers(text).map((value) =>
  value === PACKED_UNKNOWN ? null : value === PACKED_ZERO ? 0 : Math.exp(value / PACKED_STEPS));

/** Unpacks multiples of a step; null for unknown values. */
const multiples = (text, step) => integers(text).map((value) => (value === PACKED_UNKNOWN ? null : value * step));
