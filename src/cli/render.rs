//! `turnbuckle render`: pictures without a browser.

use super::{Failure, SceneArgs, SolveArgs, replay};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use turnbuckle::replay::picture::{self, Camera, ColorBy, Image, PictureOptions, png};
use turnbuckle::replay::{RecordOptions, Recorder, Recording, Stat, write_atomically};

/// Options of `render`. The scene may also be a replay page or a recording.
#[derive(Args)]
pub struct RenderArgs {
    #[command(flatten)]
    scene: SceneArgs,
    #[command(flatten)]
    solve: SolveArgs,
    /// Time of the picture, and end of the animation (s) [default: the last frame, at the scene's length or the recording's end]
    #[arg(long, value_name = "SECONDS", value_parser = at_least_zero)]
    at: Option<f64>,
    /// Write a still picture
    #[arg(long, value_name = "FILE.png", required_unless_present = "apng")]
    png: Option<PathBuf>,
    /// Write an animated PNG, which browsers play
    #[arg(long, value_name = "FILE.png")]
    apng: Option<PathBuf>,
    /// Start of the animation (s)
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = at_least_zero)]
    from: f64,
    /// Pictures a second of the animation
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=60))]
    fps: u32,
    /// Pixels across and down
    #[arg(long, value_name = "WxH", default_value = "960x540", value_parser = size)]
    size: (u32, u32),
    /// Eye and target in metres, and degrees: ex,ey,ez:tx,ty,tz[:fov] [default: the scene's first camera]
    #[arg(long, value_name = "VIEW", allow_hyphen_values = true, value_parser = Camera::parse)]
    camera: Option<Camera>,
    /// What colours stand for
    #[arg(long, value_enum, default_value = "material")]
    color: ColorArg,
    /// Dark surroundings
    #[arg(long)]
    dark: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ColorArg {
    Material,
    Partition,
    Speed,
}

fn at_least_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() && v >= 0.0 => Ok(v),
        _ => Err("expected a finite number of seconds, at least 0".into()),
    }
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let fine = 1..=picture::MOST_PIXELS;
    let side = |s: &str| s.parse().ok().filter(|n| fine.contains(n));
    let sides = text.split_once(['x', '×']).and_then(|(w, h)| side(w).zip(side(h)));
    sides.ok_or_else(|| format!("expected WxH with sides of 1 to {}, like 960x540", picture::MOST_PIXELS))
}

/// Draws a scene.
pub fn render(args: &RenderArgs) -> Result<(), Failure> {
    let recording = args.recording()?;
    let end = args.at.unwrap_or(f64::MAX);
    let options = PictureOptions {
        width: args.size.0,
        height: args.size.1,
        camera: args.camera,
        dark: args.dark,
        color_by: match args.color {
            ColorArg::Material => ColorBy::Material,
            ColorArg::Partition => ColorBy::Partition,
            ColorArg::Speed => ColorBy::Speed,
        },
        ..PictureOptions::default()
    };
    if let Some(path) = &args.png {
        let image = picture::render(&recording, recording.frame_at(end), &options);
        args.write(path, &png::encode(&image))?;
    }
    if let Some(path) = &args.apng {
        let images = animation(&recording, args.from, end, args.fps, &options);
        args.write(path, &png::encode_animation(&images, 1.0 / f64::from(args.fps)))?;
    }
    Ok(())
}

/// The pictures of an animation, `fps` a second of simulated time.
fn animation(recording: &Recording, from: f64, end: f64, fps: u32, options: &PictureOptions) -> Vec<Image> {
    let last = recording.frames.last().map_or(0.0, |f| f64::from(f.stat(Stat::Time)));
    let count = ((end.min(last) - from).max(0.0) * f64::from(fps)).round() as usize + 1;
    (0..count)
        .map(|k| recording.frame_at(from + k as f64 / f64::from(fps)))
        .map(|frame| picture::render(recording, frame, options))
        .collect()
}

impl RenderArgs {
    /// Simulates the scene up to the time asked for, or reads the recording that was given instead.
    fn recording(&self) -> Result<Recording, Failure> {
        let path = self.scene.path();
        if replay::is_page(&path) || path.extension().is_some_and(|e| e == "tbr") {
            return Recording::read(&path).map_err(replay::failure);
        }
        let mut scene = self.scene.load()?;
        let threads = self.solve.apply(&mut scene);
        let dt = scene.dt();
        let steps = self.at.map_or_else(|| scene.steps(dt), |at| (at / dt).round() as u64);
        let options = RecordOptions { contacts: false, loads: false, ..RecordOptions::default() };
        let mut recorder = Recorder::of_scene(&scene, dt, threads, options);
        for _ in 0..steps {
            scene.physics.step(&mut scene.world, dt);
            recorder.observe(&scene.world, &mut scene.physics);
        }
        Ok(recorder.finish())
    }

    fn write(&self, path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
        replay::make_folder(path)?;
        write_atomically(path, bytes).map_err(replay::failure)?;
        println!("wrote {} ({} kB)", path.display(), bytes.len().div_ceil(1000));
        Ok(())
    }
}
