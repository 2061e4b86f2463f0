//! The program from outside: exit codes, sentences, files.

use std::path::PathBuf;
use std::process::{Command, Output};

fn turnbuckle(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program starts")
}

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn run_writes_the_report_of_the_contract() {
    let folder = folder("report");
    let (report, trace) = (folder.join("r.json"), folder.join("t.csv"));
    let args = ["run", "scenes/pendulum.ron", "--steps", "30", "--no-replay", "--threads", "1", "--report"];
    let output = turnbuckle(
        &[&args[..], &[report.to_str().expect("a path"), "--trace", trace.to_str().expect("a path")]]
            .concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    for key in [
        "turnbuckle",
        "scene",
        "solver",
        "partition",
        "threads",
        "steps",
        "dt",
        "completed",
        "size",
        "systems",
        "step",
        "solve",
        "coupling",
        "pivots",
        "residual",
        "joint_error",
        "penetration",
        "energy",
        "quarantined",
        "unconverged_steps",
        "state_hash",
    ] {
        assert!(json.get(key).is_some(), "the report lacks {key}");
    }
    for (group, keys) in [
        (
            "size",
            &[
                "bodies",
                "joints",
                "contacts_max",
                "rows_mean",
                "rows_max",
                "partitions_mean",
                "interface_rows_mean",
            ][..],
        ),
        ("step", &["mean", "median", "p99"]),
        ("coupling", &["mean", "max", "at_limit"]),
        ("residual", &["median", "p99", "max"]),
        ("joint_error", &["rms", "max"]),
        ("penetration", &["mean", "max"]),
        ("energy", &["start", "end", "max_gain"]),
    ] {
        for key in keys {
            assert!(
                json[group].get(key).is_some_and(serde_json::Value::is_number),
                "the report lacks {group}.{key}"
            );
        }
    }
    assert_eq!(
        (json["scene"].as_str(), json["steps"].as_u64(), json["threads"].as_u64()),
        (Some("pendulum"), Some(30), Some(1))
    );
    assert_eq!(json["state_hash"].as_str().map(str::len), Some(16));
    assert_eq!(json["systems"]["integrate"]["calls"].as_u64(), Some(30));
    let csv = std::fs::read_to_string(&trace).expect("a trace");
    assert!(csv.starts_with("step,time,bodies,contacts,rows,interface_rows,coupling,pivots,residual,joint_error_max,penetration_max,kinetic,potential,"));
    assert_eq!(csv.lines().count(), 31);
    let columns = csv.lines().next().map(|l| l.split(',').count());
    assert!(csv.lines().all(|l| Some(l.split(',').count()) == columns), "every line has every column");
    let left: Vec<_> = std::fs::read_dir(&folder).expect("the folder").collect();
    assert_eq!(left.len(), 2, "no temporary files stay behind");
    let table = text(&output.stdout);
    assert!(
        table.contains("joints open by at most")
            && table.contains("energy from nowhere")
            && table.contains("the scene promises"),
        "{table}"
    );
}

#[test]
fn a_run_says_where_its_page_is() {
    let folder = folder("page");
    let page = folder.join("p.html");
    let output = turnbuckle(&["run", "pendulum", "--steps", "5", "--replay", page.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(page.to_str().expect("a path")));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<html"));
}

#[test]
fn quiet_is_quiet() {
    let output = turnbuckle(&["run", "pendulum", "--steps", "5", "--quiet"]);
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0));
}

#[test]
fn wrong_usage_ends_with_two() {
    for args in [
        &["run"][..],
        &["fly"],
        &["run", "pendulum", "--solver", "magic"],
        &["run", "pendulum", "--dt", "0"],
        &["run", "pendulum", "--dt", "-1"],
        &["run", "pendulum", "--dt", "NaN"],
        &["run", "pendulum", "--steps", "3", "--seconds", "1"],
        &["run", "pendulum", "--partition", "min-degree:0"],
        &["run", "pendulum", "--set", "length"],
        &["run", "pendulum", "--set", "lenght=2"],
        &["run", "nowhere.ron"],
        &["check", "Cargo.toml"],
        &["run", "pendulum", "--steps", "2", "--quiet", "--report", "Cargo.toml/x.json"],
    ] {
        let output = turnbuckle(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(!output.stderr.is_empty(), "{args:?} says nothing");
    }
    let output = turnbuckle(&["run", "pendulum", "--set", "lenght=2"]);
    assert!(text(&output.stderr).contains("did you mean `length`?"), "{}", text(&output.stderr));
    let output = turnbuckle(&["run", "pendulum", "--solver", "magic"]);
    assert!(text(&output.stderr).contains("schur-bpp"), "{}", text(&output.stderr));
}

#[test]
fn a_bad_file_is_named_with_line_and_column() {
    let folder = folder("bad");
    let file = folder.join("bad.ron");
    std::fs::write(&file, "Scene(\n  items: [\n    Body(mass: 1, colour: \"red\"),\n  ],\n)")
        .expect("written");
    let output = turnbuckle(&["check", file.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(2));
    let sentence = text(&output.stderr);
    assert!(
        sentence.contains("bad.ron:3:19: the body has no field `colour`; did you mean `color`?"),
        "{sentence}"
    );
    assert!(
        sentence.contains("\n 3 |     Body(mass: 1, colour: \"red\"),\n   |                   ^"),
        "{sentence}"
    );
    let text = "Scene(items: [Body(shape: Sphere(radius: 1), mass: 1, density: 7)])";
    std::fs::write(&file, text).expect("written");
    let output = turnbuckle(&["check", file.to_str().expect("a path")]);
    let told = text_of(&output);
    assert!(
        told.contains("  warning      ") && told.contains("`density` has no effect beside `mass`"),
        "{told}"
    );
}

#[test]
fn a_broken_promise_ends_with_one_if_asked() {
    let folder = folder("promise");
    let file = folder.join("p.ron");
    let scene = "Scene(items: [Body(name: \"b\", mass: 1)], expect: [Above(bodies: \"b\", z: -0.1)])";
    std::fs::write(&file, scene).expect("written");
    let path = file.to_str().expect("a path");
    assert_eq!(turnbuckle(&["run", path, "--quiet"]).status.code(), Some(0));
    let output = turnbuckle(&["run", path, "--quiet", "--expect"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("the scene breaks a promise: b stays above z = -0.1 m"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn scenes_and_check_explain() {
    let output = turnbuckle(&["scenes"]);
    let list = text(&output.stdout);
    for name in ["hello", "log_tower", "bridge", "tandem_cranes"] {
        assert!(list.lines().any(|l| l.starts_with(name)), "{name} is not listed");
    }
    assert!(!list.contains("cannot be loaded"), "{list}");
    let output = turnbuckle(&["check", "chain_load", "--set", "links=10"]);
    let told = text(&output.stdout);
    assert!(
        told.contains("11 dynamic") && told.contains("ratio 2000 : 1") && told.contains("links = 10"),
        "{told}"
    );
}

#[test]
fn dumped_problems_are_those_that_were_solved() {
    let folder = folder("dump");
    let output = turnbuckle(&[
        "run",
        "double_pendulum",
        "--steps",
        "4",
        "--quiet",
        "--dump-mlcp",
        folder.to_str().expect("a path"),
        "--every",
        "2",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut steps: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    steps.sort();
    assert_eq!(steps, ["step_000001", "step_000003"]);
    let problem = turnbuckle::solver::files::read(&folder.join("step_000003/island_0")).expect("a problem");
    assert_eq!(problem.b.len(), 10);
}

#[test]
fn whoever_has_read_enough_ends_it_quietly() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .arg("scenes")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = String::new();
    let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_picture_without_a_time_is_that_of_the_end() {
    let folder = folder("pictures");
    let scene = folder.join("falls.ron");
    let text = "Scene(settings: (seconds: 0.5), items: [Body(name: \"b\", shape: Sphere(radius: 1))])";
    std::fs::write(&scene, text).expect("written");
    let picture = |name: &str, at: &[&str]| {
        let file = folder.join(name);
        let (scene, png) = (scene.to_str().expect("a path"), file.to_str().expect("a path"));
        let camera = ["--camera", "0,-20,0:0,0,0", "--size", "96x96"];
        let args = [&["render", scene, "--png", png][..], &camera, at].concat();
        let output = turnbuckle(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        std::fs::read(&file).expect("a picture")
    };
    let (first, last) = (picture("first.png", &["--at", "0"]), picture("last.png", &["--at", "0.5"]));
    assert!(first != last, "the ball falls");
    assert!(picture("end.png", &[]) == last);
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// The rows of a comparison, from its report.
fn compared(name: &str, args: &[&str]) -> (Vec<serde_json::Value>, String) {
    let report = folder(name).join("r.json");
    let output = turnbuckle(&[&["compare"], args, &["--report", report.to_str().expect("a path")]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    (json["rows"].as_array().expect("rows").clone(), text(&output.stdout))
}

#[test]
fn a_comparison_says_which_rows_were_not_cut() {
    let solvers = ["--solvers", "auto,schur-bpp,fbic", "--steps", "3"];
    let (rows, told) =
        compared("not_cut", &[&["double_pendulum", "--partitions", "none"], &solvers[..]].concat());
    assert!(rows.iter().all(|r| r["cut"] == 0.0));
    let line = |told: &str, solver: &str| {
        told.lines().find(|l| l.starts_with(solver)).map_or_else(String::new, str::to_string)
    };
    assert!(
        line(&told, "schur-bpp").contains("not cut") && line(&told, "fbic").contains("not cut"),
        "{told}"
    );
    assert!(!line(&told, "auto").contains("not cut"), "{told}");
    assert!(told.contains("are those of auto under another name"), "{told}");
    for recorded in [&[][..], &["--recorded"]] {
        let how = ["chain_load", "--set", "links=20", "--partitions", "none,min-degree:4"];
        let (rows, told) = compared("cut", &[&how[..], &solvers, recorded].concat());
        assert_eq!(rows.len(), 6, "every solver with every partitioning: {told}");
        for row in &rows {
            let cut = row["partition"] == "min-degree:4";
            assert_eq!(row["cut"].as_f64(), Some(f64::from(u8::from(cut))), "{row}");
            // The chain of 21 bodies is one group, and falls into the same partitions however it is solved.
            assert_eq!(
                row["partitions"],
                if cut { rows[1]["partitions"].clone() } else { 1.0.into() },
                "{row}"
            );
            assert!(!cut || row["partitions"].as_f64() > Some(1.0), "{row}");
            assert!(
                row["residual_max"].as_f64().is_some_and(|r| r < 1e-6) || row["solver"] == "fbic",
                "{row}"
            );
        }
    }
}

#[test]
fn a_problem_without_partitions_says_that_it_was_not_cut() {
    let folder = folder("whole");
    let entries = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n2 1 1\n2 2 2\n";
    for (name, text) in
        [("A.mtx", entries), ("b.txt", "1\n-4\n"), ("lo.txt", "0\n0\n"), ("hi.txt", "inf\ninf\n")]
    {
        std::fs::write(folder.join(name), text).expect("written");
    }
    let solve = |solver: &str| {
        let output = turnbuckle(&["solve", folder.to_str().expect("a path"), "--solver", solver]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        text(&output.stdout)
    };
    let told = solve("schur-bpp");
    assert!(told.contains("there is no partition.txt, so schur-bpp was answered by auto"), "{told}");
    assert!(solve("schur-ipm").contains("answered by ipm"));
    assert!(!solve("bpp").contains("partition.txt"));
    std::fs::write(folder.join("partition.txt"), "0\n1\n").expect("written");
    assert!(solve("schur-bpp").contains("a matrix has no bodies"));
}

#[test]
fn what_motors_put_in_is_not_called_bad() {
    for (scene, steps) in [("slider_crank", "120"), ("vehicle", "120")] {
        let report = folder(&format!("driven_{scene}")).join("r.json");
        let path = report.to_str().expect("a path");
        let output = turnbuckle(&["run", scene, "--steps", steps, "--no-replay", "--report", path]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        let told = text(&output.stdout);
        let line = told.lines().find(|l| l.contains("energy from nowhere")).expect("a line about energy");
        assert!(line.ends_with("good"), "{told}");
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
        let energy = |key: &str| json["energy"][key].as_f64().expect("a number");
        assert!(energy("work") > 0.0 && energy("max_gain") > 0.0, "a motor drives it: {}", json["energy"]);
        assert!(told.contains(&format!("; {} bodies,", json["size"]["moving"])), "{told}");
    }
    let told = text(&turnbuckle(&["check", "crane"]).stdout);
    assert!(told.contains("with motors"), "winches count: {told}");
}

#[test]
fn what_is_watched_is_in_trace_and_report() {
    let folder = folder("watch");
    let (report, trace) = (folder.join("r.json"), folder.join("t.csv"));
    let (r, t) = (report.to_str().expect("a path"), trace.to_str().expect("a path"));
    let run = ["run", "slider_crank", "--steps", "30", "--no-replay", "--report", r, "--trace", t];
    let output = turnbuckle(&[&run[..], &["--watch", "slid*", "--watch", "motor"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let csv = std::fs::read_to_string(&trace).expect("a trace");
    let lines: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert!(lines.iter().all(|l| l.len() == lines[0].len()));
    let column = |name: &str| -> Vec<f64> {
        let at = lines[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("no column {name}"));
        lines[1..].iter().map(|l| l[at].parse().expect("a number")).collect()
    };
    for c in ["x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"] {
        assert_eq!(column(&format!("slider.{c}")).len(), 30);
    }
    let (time, turn, rate, torque) =
        (column("time"), column("motor.q0"), column("motor.qd0"), column("motor.f0"));
    let scene = turnbuckle::scene::open(concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/slider_crank.ron"))
        .expect("ours");
    let speed = scene.joint("motor").and_then(|j| j.target(0)).expect("a motor");
    for i in 1..30 {
        // The motor has the speed it is set to: its compliance of 1e-9 lets a torque of 1e4 slip by 1e-5.
        assert!((rate[i] - speed).abs() < 1e-3, "{} is not {speed}", rate[i]);
        // Angles are within half a turn of zero; from one step to the next it turns by rate times step.
        let turned = (turn[i] - turn[i - 1]).rem_euclid(std::f64::consts::TAU);
        let expected = (speed * (time[i] - time[i - 1])).rem_euclid(std::f64::consts::TAU);
        assert!((turned - expected).abs() < 1e-3, "{turned} is not {expected}");
    }
    assert!(torque.iter().any(|t| t.abs() > 1e-3), "a motor that turns a crank needs a torque");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    for name in ["slider.x", "motor.fx", "motor.q0"] {
        let (told, last) = (json["watch"][name]["end"].as_f64(), column(name)[29]);
        // The reader of JSON may miss the last bit of a number.
        assert!(
            told.is_some_and(|v| (v - last).abs() <= 1e-15 * last.abs()),
            "{name}: {told:?} is not {last}"
        );
    }
    let output = turnbuckle(&["run", "slider_crank", "--steps", "1", "--watch", "slidr", "--no-replay"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `slider`?"), "{}", text(&output.stderr));
}

#[test]
fn what_a_script_does_before_the_first_step_is_work() {
    let folder = folder("kick");
    let (file, report) = (folder.join("kick.ron"), folder.join("r.json"));
    let kick = "After(seconds: 0, action: Impulse(body: \"b\", impulse: (0, 0, 10)))";
    let scene = format!("Scene(items: [Body(name: \"b\", mass: 2), {kick}])");
    std::fs::write(&file, scene).expect("written");
    let (f, r) = (file.to_str().expect("a path"), report.to_str().expect("a path"));
    let output = turnbuckle(&["run", f, "--steps", "10", "--quiet", "--report", r]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    let energy = |key: &str| json["energy"][key].as_f64().expect("a number");
    // p²/2m = 25 J; a few roundings of numbers of that size.
    assert!((energy("work") - 25.0).abs() < 1e-12 * 25.0, "{}", json["energy"]);
    assert!(energy("max_unexplained") < 1e-12 * 25.0, "{}", json["energy"]);
}
