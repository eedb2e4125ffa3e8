//! Zipf-distributed pages in constant time: an alias table.
//!
//! Invariant: page i (counted from 0) is drawn with probability (i + 1)^−S / H(n, S), to the 32 bits
//! of a table entry. The table takes 8 bytes per page, apart from the simulator's memory.

/// Walker's alias table ("An efficient method for generating discrete random variables with general
/// distributions", ACM TOMS 1977), made by Vose's algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// Chance out of 2^32 to stay with the column, and the other page.
    columns: Vec<(u32, u32)>,
}

impl Zipf {
    /// Pages 0 to `pages` − 1, exponent `s` ≥ 0.
    pub fn new(pages: u32, s: f64) -> Zipf {
        let n = pages as usize;
        let mut weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-s)).collect();
        let mean = weights.iter().sum::<f64>() / n as f64;
        for weight in &mut weights {
            *weight /= mean;
        }
        let mut columns: Vec<(u32, u32)> = (0..pages).map(|page| (u32::MAX, page)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&page| weights[page] < 1.0);
        while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
            small.pop();
            columns[less] = ((weights[less] * 4_294_967_296.0) as u32, more as u32);
            weights[more] -= 1.0 - weights[less];
            if weights[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Zipf { columns }
    }

    /// The page for 64 random bits.
    #[inline]
    pub fn page(&self, bits: u64) -> u32 {
        let column = (u128::from(bits) * self.columns.len() as u128) >> 64;
        let (stay, other) = self.columns[column as usize];
        // The low half decides: the high half chose the column.
        if (bits as u32) < stay { column as u32 } else { other }
    }
}
