//! The critical path of a solve: every partition's part of every parallel region is timed on one thread, and P threads take
//! the longest of them (list scheduling) plus all that is serial plus what a region costs ([`wake`]).

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::Instant;
use turnbuckle::coupling::executor::Executor;
use turnbuckle::systems::parallel::Crew;

/// Milliseconds to give a region to threads that wait awake and to wait for the last of them: measured once on two threads, the
/// median of many regions of five microseconds an item.
pub fn wake() -> f64 {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
        let crew = Crew::default();
        let mut times: Vec<f64> = pool.install(|| {
            crew.together(2, || {
                let region = |_| {
                    let start = Instant::now();
                    crew.for_each(&mut [0.0f64; 2], |_, spent| {
                        let own = Instant::now();
                        while own.elapsed().as_nanos() < 5_000 {}
                        *spent = own.elapsed().as_secs_f64();
                    });
                    1e3 * start.elapsed().as_secs_f64() - 0.005
                };
                (0..4001).map(region).collect()
            })
        });
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

thread_local! {
    static REGIONS: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// Runs items one after another and keeps the time of each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed;

impl Executor for Timed {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        if items.len() < 2 {
            return items.iter_mut().enumerate().for_each(|(k, item)| f(k, item));
        }
        let times = items
            .iter_mut()
            .enumerate()
            .map(|(k, item)| {
                let start = Instant::now();
                f(k, item);
                1e3 * start.elapsed().as_secs_f64()
            })
            .collect();
        REGIONS.with(|r| r.borrow_mut().push(times));
    }
}

/// Runs items by the crew it leads, or one after another, and keeps when each began and ended.
#[derive(Clone, Debug, Default)]
#[allow(dead_code)] // not every bench looks so closely
pub struct Watched;

/// One region as it was seen: what was serial before it, until the first part began, every part, and after the last; microseconds.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// On the leading thread since the region before.
    pub before: f64,
    /// Of every part, when it began and when it ended.
    pub parts: Vec<[f64; 2]>,
    /// When the leading thread went on.
    pub end: f64,
}

thread_local! {
    static SEEN: RefCell<(Option<Instant>, Vec<Seen>)> = const { RefCell::new((None, Vec::new())) };
}

impl Executor for Watched {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        let begin = Instant::now();
        let mut timed: Vec<(&mut T, [f64; 2])> = items.iter_mut().map(|item| (item, [0.0; 2])).collect();
        let micros = |since: Instant| 1e6 * since.elapsed().as_secs_f64();
        // Whichever crew is asked, the team that this thread leads does the work.
        Crew::default().for_each(&mut timed, |k, (item, span)| {
            let start = micros(begin);
            f(k, item);
            *span = [start, micros(begin)];
        });
        let end = micros(begin);
        let parts = timed.into_iter().map(|(_, span)| span).collect();
        SEEN.with_borrow_mut(|(last, seen)| {
            let before = last.map_or(0.0, |last| 1e6 * (begin - last).as_secs_f64());
            seen.push(Seen { before, parts, end });
            *last = Some(Instant::now());
        });
    }
}

/// The regions of one solve, and what comes after the last of them.
type Run = (Vec<Seen>, f64);

/// What the regions of a solve take: medians of many runs, and what comes after the last region.
#[allow(dead_code)] // not every bench looks so closely
pub fn anatomy(mut f: impl FnMut()) -> Run {
    let mut runs: Vec<Run> = Vec::new();
    for _ in 0..301 {
        SEEN.set((Some(Instant::now()), Vec::new()));
        f();
        let (last, seen) = SEEN.take();
        runs.push((seen, last.map_or(0.0, |last| 1e6 * last.elapsed().as_secs_f64())));
    }
    let shape = runs[runs.len() / 2].0.clone();
    runs.retain(|(seen, _)| seen.len() == shape.len());
    let median = |of: &dyn Fn(&Run) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let seen = (0..shape.len()).map(|k| Seen {
        before: median(&|run| run.0[k].before),
        parts: (0..shape[k].parts.len())
            .map(|p| [0, 1].map(|side| median(&|run| run.0[k].parts[p][side])))
            .collect(),
        end: median(&|run| run.0[k].end),
    });
    (seen.collect(), median(&|run| run.1))
}

/// One run: elapsed on one thread, and the times of its parallel regions.
#[derive(Clone, Default)]
pub struct Trace {
    /// Milliseconds on one thread.
    pub elapsed: f64,
    /// Of every parallel region, the milliseconds of its parts.
    pub regions: Vec<Vec<f64>>,
}

impl Trace {
    /// Milliseconds in parallel regions, all parts.
    pub fn parallel(&self) -> f64 {
        self.regions.iter().flatten().sum()
    }

    /// Time on `p` threads.
    pub fn on(&self, p: usize) -> f64 {
        let serial = self.elapsed - self.parallel();
        let wake = if p > 1 { wake() * self.regions.len() as f64 } else { 0.0 };
        serial + wake + self.regions.iter().map(|r| makespan(r, p)).sum::<f64>()
    }
}

/// Milliseconds that `p` threads take for parts of these times, the longest first.
pub fn makespan(times: &[f64], p: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut load = vec![0.0f64; p];
    for t in sorted {
        let least = (0..p).min_by(|&a, &b| load[a].total_cmp(&load[b])).expect("a thread");
        load[least] += t;
    }
    load.into_iter().fold(0.0, f64::max)
}

/// Milliseconds this thread has had a core, where the system tells (Linux): other programs hardly disturb it. It is renewed a
/// few hundred times a second only, so many runs are to be measured at once.
fn on_core(start: &Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let own = told.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    own.map_or_else(|| 1e3 * start.elapsed().as_secs_f64(), |ns| 1e-6 * ns)
}

/// Times of a solve on one thread: the mean time on a core of a few runs, split into regions in the proportions of the least
/// times seen of every part of every region and of all that is outside of regions. So neither other programs nor
/// the clock's readings count, and whole and cut solves are measured alike.
pub fn fastest(runs: usize, mut f: impl FnMut()) -> Trace {
    let mut least = Trace::default();
    let mut serial = f64::INFINITY;
    f();
    let clock = Instant::now();
    let (mut cpu, mut count) = (on_core(&clock), 0);
    while count < runs || (clock.elapsed().as_millis() < 60 && count < 400) {
        REGIONS.with(|r| r.borrow_mut().clear());
        let start = Instant::now();
        f();
        let elapsed = 1e3 * start.elapsed().as_secs_f64();
        count += 1;
        let run = Trace { elapsed, regions: REGIONS.with(|r| r.borrow().clone()) };
        serial = serial.min(elapsed - run.parallel());
        if least.regions.len() != run.regions.len() {
            least = run;
            continue;
        }
        for (least, now) in least.regions.iter_mut().flatten().zip(run.regions.iter().flatten()) {
            *least = least.min(*now);
        }
    }
    cpu = (on_core(&clock) - cpu) / count as f64;
    let scale = cpu / (serial + least.parallel());
    least.regions.iter_mut().flatten().for_each(|t| *t *= scale);
    Trace { elapsed: cpu, regions: least.regions }
}
