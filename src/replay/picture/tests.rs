use super::*;
use crate::replay::sample;

fn small() -> PictureOptions {
    PictureOptions { width: 160, height: 90, ..PictureOptions::default() }
}

#[test]
fn a_picture_has_its_size_and_is_not_blank() {
    let image = render(&sample::tumbling(30, 20), 10, &small());
    assert_eq!(image.rgb.len(), 3 * 160 * 90);
    let colours: std::collections::BTreeSet<&[u8]> = image.rgb.chunks(3).collect();
    assert!(colours.len() > 200, "{}", colours.len());
}

#[test]
fn nothing_to_see_is_no_panic() {
    render(&Recording::default(), 7, &small());
    let odd = PictureOptions { width: 0, height: 1, fineness: 0, ..small() };
    assert_eq!(render(&sample::tumbling(3, 1), 0, &odd).rgb.len(), 3);
    // The eye inside a body, and right on the ground.
    let camera = Camera { eye: Vec3::new(0.0, 0.0, 0.0), target: Vec3::X, fov: 100.0 };
    render(&sample::tumbling(30, 20), 10, &PictureOptions { camera: Some(camera), ..small() });
}

#[test]
fn a_near_ball_hides_a_far_one_and_is_round() {
    let mut recording = sample::tumbling(3, 1);
    for (body, (color, x)) in
        recording.bodies.iter_mut().zip([([0; 3], 0.0), ([255, 0, 0], 0.0), ([0, 0, 255], 6.0)])
    {
        body.color = color;
        let place = usize::from(x > 0.0) + 1;
        body.parts.truncate(usize::from(body.kind != super::super::recording::Kind::Fixed));
        for part in &mut body.parts {
            part.form = super::super::recording::Form::Sphere;
            part.size = [1.0; 3];
        }
        recording.frames[0].poses[place].position = [x, 0.0, 0.0];
    }
    let camera = Camera { eye: Vec3::new(-10.0, 0.0, 0.0), target: Vec3::ZERO, fov: 30.0 };
    let options =
        PictureOptions { width: 100, height: 100, camera: Some(camera), ..PictureOptions::default() };
    let image = render(&recording, 0, &options);
    let red = |x: usize, y: usize| {
        let [r, g, b] = [0, 1, 2].map(|k| u32::from(image.rgb[3 * (100 * y + x) + k]));
        r > 2 * g.max(b)
    };
    assert!(red(50, 50), "the near ball is in the middle");
    let across = (0..100).filter(|&x| red(x, 50)).count();
    let down = (0..100).filter(|&y| red(50, y)).count();
    // Half angle asin(1/10) against a half field of tan 15°: 100 · tan(5.74°)/tan(15°) = 37.5 pixels.
    assert!((36..=39).contains(&across) && (36..=39).contains(&down), "{across} × {down}");
}

#[test]
fn pngs_can_be_inflated_and_hold_the_picture() {
    let image = render(&sample::tumbling(10, 5), 2, &small());
    let file = png::encode(&image);
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    // The check sum of the last, empty chunk is a constant of the format.
    assert_eq!(&file[file.len() - 12..], b"\0\0\0\0IEND\xaeB`\x82");
    let at = file.windows(4).position(|w| w == b"IDAT").expect("image data");
    let length = u32::from_be_bytes(file[at - 4..at].try_into().expect("four bytes")) as usize;
    let raw =
        miniz_oxide::inflate::decompress_to_vec_zlib(&file[at + 4..at + 4 + length]).expect("a zlib stream");
    assert_eq!(unfilter(&raw, 160), image.rgb);
}

/// The other direction of the filters, from the specification.
fn unfilter(raw: &[u8], width: usize) -> Vec<u8> {
    let across = 3 * width;
    let mut out: Vec<u8> = Vec::new();
    for row in raw.chunks(across + 1) {
        let start = out.len();
        for i in 0..across {
            let left = if i >= 3 { out[start + i - 3] } else { 0 };
            let up = if start > 0 { out[start + i - across] } else { 0 };
            let corner = if i >= 3 && start > 0 { out[start + i - across - 3] } else { 0 };
            let p = i32::from(left) + i32::from(up) - i32::from(corner);
            let nearest =
                [left, up, corner].into_iter().min_by_key(|&v| (p - i32::from(v)).abs()).expect("three");
            let guess = match row[0] {
                1 => left,
                2 => up,
                4 => nearest,
                other => panic!("filter {other}"),
            };
            out.push(row[i + 1].wrapping_add(guess));
        }
    }
    out
}

#[test]
fn animations_store_what_changes() {
    let recording = sample::tumbling(4, 20);
    let images: Vec<Image> = (0..4).map(|f| render(&recording, f, &small())).collect();
    let moving = png::encode_animation(&images, 0.05);
    let still = png::encode_animation(&vec![images[0].clone(); 4], 0.05);
    let count = |file: &[u8], kind: &[u8]| file.windows(4).filter(|w| *w == kind).count();
    assert_eq!((count(&moving, b"fcTL"), count(&moving, b"fdAT")), (4, 3));
    assert!(still.len() < png::encode(&images[0]).len() + 400, "{}", still.len());
    assert!(png::encode_animation(&[], 0.1).is_empty());
}

#[test]
fn cameras_are_read_or_refused_with_a_sentence() {
    let camera = Camera::parse("1,2,3:0,0,0.5:40").expect("well formed");
    assert_eq!((camera.eye, camera.fov), (Vec3::new(1.0, 2.0, 3.0), 40.0));
    for wrong in ["", "1,2,3", "1,2:3,4", "1,2,3:1,2,3", "1,2,nan:0,0,0", "1,2,3:0,0,0:500"] {
        assert!(Camera::parse(wrong).is_err(), "{wrong}");
    }
}
