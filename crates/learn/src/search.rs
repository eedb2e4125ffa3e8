//! Which units share a stream: the search over groupings.
//!
//! Invariant: the same scores give the same course, whoever computes them; a grouping is asked for
//! once. Streams other than the one without a hint are alike, so that a grouping has one form.

use std::collections::HashMap;

use shelflife_lifetime::Lifetime;
use shelflife_ssd::Transport;

use crate::Error;
use crate::units::Units;

/// Group of each unit: 0 goes without hint; others are numbered as they come.
pub(crate) type Groups = Vec<u8>;

/// A grouping with its score; less is better.
pub(crate) type Scored = (Groups, f64);

/// Scores several groupings at once.
pub(crate) type Evaluate<'a> = dyn FnMut(&[Groups]) -> Result<Vec<f64>, Error> + 'a;

/// So many groupings are all tried.
const ALL: usize = 64;
/// The most groupings that are tried.
const MOST: usize = 200;
/// A step is taken for no less: the simulator is exact to half a percent.
const LEAST_STEP: f64 = 0.001;

/// How many rules it takes, at most.
pub(crate) fn rules(groups: &[u8]) -> usize {
    groups.iter().copied().max().unwrap_or(0).into()
}

/// How many units are named by rules.
pub(crate) fn named(groups: &[u8]) -> usize {
    groups.iter().filter(|group| **group > 0).count()
}

/// The one form of a grouping.
fn canonical(groups: &[u8]) -> Groups {
    let mut numbers: HashMap<u8, u8> = HashMap::from([(0, 0)]);
    let number = |group: &u8| {
        let next = numbers.len() as u8;
        *numbers.entry(*group).or_insert(next)
    };
    groups.iter().map(number).collect()
}

/// Every grouping of `units` units into at most `most` groups beside the one without hint; `None`
/// if these are more than [`ALL`].
fn all(units: usize, most: usize) -> Option<Vec<Groups>> {
    let mut found: Vec<Groups> = vec![Vec::new()];
    for _ in 0..units {
        let grown = found.iter().flat_map(|groups| {
            let next = rules(groups) + 1;
            (0..=next.min(most)).map(move |group| [groups.as_slice(), &[group as u8]].concat())
        });
        found = grown.collect();
        if found.len() > ALL {
            return None;
        }
    }
    Some(found)
}

/// Where to begin if there are too many: nothing, each unit alone, and cuts of the order by median.
fn seeds(units: usize, most: usize) -> Vec<Groups> {
    let mut seeds = vec![vec![0; units]];
    let mut add = |group: &dyn Fn(usize) -> u8| {
        seeds.push(canonical(&(0..units).map(group).collect::<Groups>()));
    };
    for at in 0..units {
        add(&|unit| u8::from(unit == at));
        add(&|unit| u8::from(unit <= at));
        add(&|unit| u8::from(unit >= at));
        for other in at + 1..units {
            if most >= 2 {
                add(&|unit| if unit <= at { 1 } else { 2 * u8::from(unit > other) });
                add(&|unit| if unit <= at { 1 } else { 2 * u8::from(unit <= other) });
            }
        }
    }
    seeds
}

/// All groupings that differ in one unit.
fn neighbours(groups: &[u8], most: usize) -> Vec<Groups> {
    let mut found = Vec::new();
    for unit in 0..groups.len() {
        for group in 0..=(rules(groups) + 1).min(most) {
            let mut changed = groups.to_vec();
            changed[unit] = group as u8;
            found.push(canonical(&changed));
        }
    }
    found
}

/// Groupings with their scores (less is better), the best first, of equal ones the one with fewer
/// rules. `evaluate` scores several at once.
pub(crate) fn search(
    units: usize,
    most: usize,
    evaluate: &mut Evaluate<'_>,
) -> Result<Vec<Scored>, Error> {
    let mut scores: HashMap<Groups, f64> = HashMap::new();
    let mut ask = |wanted: Vec<Groups>, scores: &mut HashMap<Groups, f64>| {
        let mut new: Vec<Groups> =
            wanted.into_iter().filter(|groups| !scores.contains_key(groups)).collect();
        new.sort();
        new.dedup();
        new.truncate(MOST.saturating_sub(scores.len()));
        let found = evaluate(&new)?;
        scores.extend(new.into_iter().zip(found));
        Ok::<(), Error>(())
    };
    match all(units, most) {
        Some(all) => ask(all, &mut scores)?,
        None => {
            ask(seeds(units, most), &mut scores)?;
            for begin in sorted(&scores).into_iter().take(2) {
                let (mut groups, mut score) = begin;
                loop {
                    let near = neighbours(&groups, most);
                    ask(near.clone(), &mut scores)?;
                    let known = near.into_iter().filter_map(|near| {
                        let score = *scores.get(&near)?;
                        Some((near, score))
                    });
                    match known.min_by(better) {
                        Some(best) if best.1 < score - LEAST_STEP => (groups, score) = best,
                        _ => break,
                    }
                }
            }
        }
    }
    Ok(sorted(&scores))
}

/// Less is better, then fewer rules, then fewer names.
pub(crate) fn better(a: &Scored, b: &Scored) -> std::cmp::Ordering {
    let size = |groups: &Groups| (rules(groups), named(groups));
    a.1.total_cmp(&b.1).then_with(|| size(&a.0).cmp(&size(&b.0))).then_with(|| a.0.cmp(&b.0))
}

fn sorted(scores: &HashMap<Groups, f64>) -> Vec<Scored> {
    let mut sorted: Vec<_> =
        scores.iter().map(|(groups, score)| (groups.clone(), *score)).collect();
    sorted.sort_by(better);
    sorted
}

/// The lifetimes that reach a stream of their own: the shortest and the longest.
pub(crate) type Distinct = (Lifetime, Lifetime);

/// The lifetimes that a transport tells from no hint and from each other, by stream; shortest first,
/// and `none`, which says nothing, last.
pub(crate) fn lifetimes(transport: Transport, streams: u32) -> Vec<Distinct> {
    use Lifetime::{Extreme, Long, Medium, None, NotSet, Short};
    let rest = transport.stream(NotSet, streams);
    let mut found: Vec<(u32, Distinct)> = Vec::new();
    for lifetime in [Short, Medium, Long, Extreme, None] {
        let stream = transport.stream(lifetime, streams);
        match found.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, (_, longest))) if lifetime != None => *longest = lifetime,
            Some(_) => {}
            Option::None if stream == rest => {}
            Option::None => found.push((stream, (lifetime, lifetime))),
        }
    }
    found.into_iter().map(|(_, lifetimes)| lifetimes).collect()
}

/// The lifetime of each group, group 0 first: those that live shorter than what goes without hint
/// get the shortest, the others the longest that there are.
pub(crate) fn assign(groups: &[u8], units: &Units, lifetimes: &[Distinct]) -> Vec<Lifetime> {
    let never = u64::MAX;
    // the median of a group is that of its largest unit: what is written most matters most
    let largest = |group: usize| {
        let own = units.units.iter().zip(groups).filter(|(_, own)| usize::from(**own) == group);
        own.max_by_key(|(unit, _)| unit.written).map(|(unit, _)| unit.median.unwrap_or(never))
    };
    let rest = largest(0).or(units.rest).unwrap_or(never);
    let mut order: Vec<(u64, usize)> =
        (1..=rules(groups)).map(|group| (largest(group).unwrap_or(never), group)).collect();
    order.sort_unstable();
    let shorter = order.iter().filter(|(median, _)| *median <= rest).count();
    let longer = order.len() - shorter;
    let says: Vec<Distinct> =
        lifetimes.iter().copied().filter(|(shortest, _)| *shortest != Lifetime::None).collect();
    let chosen: Vec<Lifetime> = if order.len() <= says.len() {
        let short = says[..shorter].iter().map(|(shortest, _)| *shortest);
        short.chain(says[says.len() - longer..].iter().map(|(_, longest)| *longest)).collect()
    } else {
        lifetimes.iter().map(|(shortest, _)| *shortest).collect()
    };
    let mut by_group = vec![Lifetime::NotSet; rules(groups) + 1];
    for ((_, group), lifetime) in order.into_iter().zip(chosen) {
        by_group[group] = lifetime;
    }
    by_group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn every_grouping_is_there_once() {
        // Bell numbers: partitions of the units and the group without hint
        for (units, count) in [(0, 1), (1, 2), (2, 5), (3, 15), (4, 52)] {
            let all = all(units, 10).unwrap();
            assert_eq!(all.len(), count);
            assert!(all.iter().all(|groups| canonical(groups) == *groups));
        }
        assert_eq!(all(3, 1).unwrap().len(), 8);
        assert!(all(5, 10).is_none() && all(6, 1).is_some());
    }

    /// A landscape with a known best: the score counts units that are not where they belong.
    #[test]
    fn the_best_grouping_is_found_among_many() {
        let wanted = [1, 2, 0, 1, 3, 2, 0, 0, 3];
        let mut asked = 0;
        let mut evaluate = |list: &[Groups]| {
            asked += list.len();
            let score = |groups: &Groups| {
                let pairs = (0..9).flat_map(|a| (0..a).map(move |b| (a, b)));
                pairs
                    .filter(|(a, b)| (groups[*a] == groups[*b]) != (wanted[*a] == wanted[*b]))
                    .count()
            };
            Ok(list.iter().map(|groups| score(groups) as f64).collect())
        };
        let found = search(9, 4, &mut evaluate).unwrap();
        assert!(found[0].1 <= 3.0, "{:?}", found[0]);
        assert!(asked <= MOST, "{asked}");
    }

    #[test]
    fn transports_tell_few_lifetimes_apart() {
        use Lifetime::{Extreme, Long, Medium, None, Short};
        let alone = |lifetimes: &[Lifetime]| lifetimes.iter().map(|l| (*l, *l)).collect::<Vec<_>>();
        let all = alone(&[Short, Medium, Long, Extreme, None]);
        assert_eq!(lifetimes(Transport::Scsi, 6), all);
        assert_eq!(lifetimes(Transport::Scsi, 2), [(Short, Extreme)]);
        assert_eq!(
            lifetimes(Transport::Ideal, 4),
            [(Short, Short), (Medium, Extreme), (None, None)]
        );
        assert_eq!(lifetimes(Transport::NvmeRaw, 8), all[..4]);
        assert_eq!(lifetimes(Transport::NvmeRaw, 2), [(Short, Short)]);
        assert_eq!(lifetimes(Transport::F2fsFdp, 8), alone(&[Short, Extreme]));
        assert_eq!(lifetimes(Transport::Unhinted, 8), []);
    }

    #[test]
    fn shorter_lives_get_shorter_lifetimes() {
        use Lifetime::{Extreme, Long, NotSet, Short};
        let unit = |median| Unit {
            name: String::new(),
            classes: Vec::new(),
            relation: None,
            written: 1,
            median,
        };
        let units = [Some(5), Some(50), Some(70), None].map(unit).into();
        let units = Units { units, by_file: Vec::new(), rest: None };
        let known = lifetimes(Transport::Scsi, 6);
        assert_eq!(assign(&[1, 0, 2, 3], &units, &known), [NotSet, Short, Long, Extreme]);
        assert_eq!(assign(&[0, 0, 0, 1], &units, &known), [NotSet, Extreme]);
        let one = lifetimes(Transport::Scsi, 2);
        assert_eq!(assign(&[0, 0, 1, 1], &units, &one), [NotSet, Extreme]);
        assert_eq!(assign(&[1, 1, 0, 0], &units, &one), [NotSet, Short]);
    }
}
