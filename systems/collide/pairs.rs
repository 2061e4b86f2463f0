//! The lists of pairs: who is near, and who has a contact.

use crate::collision::{Collision, NearPair, Pair};
use crate::geometry::insert_sorted;

/// Up to so many pairs are taken out of a list one by one.
const FEW: usize = 8;

/// Brings the lists up to date with the broad phase. Contacts of pairs that have parted go to `old_pairs`.
pub fn refresh(collision: &mut Collision) {
    let Collision { broad, near, pairs, old_pairs, ended, .. } = collision;
    let changed = broad.refresh();
    let removed = broad.take_removed();
    // Pairs of colliders that are gone first: their ranks mean nothing any more.
    if !removed.is_empty() {
        let gone =
            |ids: (u32, u32)| removed.binary_search(&ids.0).is_ok() || removed.binary_search(&ids.1).is_ok();
        near.retain(|p| !gone(p.ids));
        old_pairs.extend(pairs.extract_if(.., |p| gone(p.ids)));
    }
    if changed {
        sift(near, |p| broad.parted(p.ids) || broad.is_fresh(p.ids), drop);
        sift(pairs, |p| broad.parted(p.ids) || broad.is_left_out(p.ids), |p| old_pairs.push(p));
        // What is listed anew may have its contact already.
        let has_contact = |ids: (u32, u32)| {
            broad.is_fresh(ids) && pairs.binary_search_by_key(&broad.rank(ids), |p| broad.rank(p.ids)).is_ok()
        };
        ended.extend(broad.found().iter().filter(|ids| !has_contact(**ids)).map(|ids| NearPair::new(*ids)));
        insert_sorted(near, ended, |p| broad.rank(p.ids));
        broad.settle();
    }
}

/// Moves the pairs in `begun` from those that are near to those with a contact; both are sorted.
pub fn begin(collision: &mut Collision) {
    let Collision { broad, near, pairs, begun, .. } = collision;
    if begun.is_empty() {
        return;
    }
    let place = |near: &[NearPair], ids| near.partition_point(|p| broad.rank(p.ids) < broad.rank(ids));
    if begun.len() < FEW {
        for pair in begun.iter() {
            near.remove(place(near, pair.ids));
        }
    } else {
        let mut gone = begun.iter().peekable();
        near.retain(|p| gone.next_if(|b| b.ids == p.ids).is_none());
    }
    insert_sorted(pairs, begun, |p| broad.rank(p.ids));
}

/// Moves pairs without contact back to those that are only near.
pub fn end(collision: &mut Collision, mut each: impl FnMut(Pair)) {
    let Collision { broad, near, pairs, ended, .. } = collision;
    for pair in pairs.extract_if(.., |p| !p.touches && !p.asleep) {
        ended.push(NearPair { ids: pair.ids, free: pair.free });
        each(pair);
    }
    insert_sorted(near, ended, |p| broad.rank(p.ids));
}

/// Takes out what is gone; most often nothing is, and the list is only read.
fn sift<T>(list: &mut Vec<T>, gone: impl Fn(&T) -> bool, take: impl FnMut(T)) {
    if let Some(first) = list.iter().position(&gone) {
        list.extract_if(first.., |item| gone(item)).for_each(take);
    }
}
