//! An unchanged topology allocates nothing: load, factor and solve after the first step.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnbuckle::solver::mixed::MixedSystem;
use turnbuckle::solver::{Label, generate};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// The only way to count is to be the allocator.
#[allow(unsafe_code)]
// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn later_steps_of_a_topology_allocate_nothing() {
    let problems = [
        generate::chain_on_ground(40, 1e-8),
        generate::tower(10, 4, 2500.0, 1e-8),
        generate::rocks(60, 1e-8),
    ];
    for problem in &problems {
        let mut labels = vec![Label::Free; problem.rows()];
        let mut v = vec![0.0; 6 * problem.bodies()];
        let mut lambda = vec![0.0; problem.rows()];
        let mut system = MixedSystem::default();
        let mut first = 0;
        for step in 0..3 {
            if step == 1 {
                first = COUNT.load(Ordering::Relaxed);
            }
            system.load(problem);
            for pivot in 0..5 {
                labels[7 * step + pivot] = Label::Lower;
                system.factor(problem, &labels, None);
                system.solve_pivot(problem, &mut v, &mut lambda, 1);
            }
        }
        assert_eq!(COUNT.load(Ordering::Relaxed) - first, 0);
    }
}
