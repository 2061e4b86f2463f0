//! The lines of this machine: `same-bits FOLDER`, where FOLDER holds `scenes`.

use same_bits::Cases;
use std::path::Path;
use turnbuckle::scene::Memory;

fn main() -> std::io::Result<()> {
    let root = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let mut files = Memory::default();
    for folder in ["scenes", "scenes/parts"] {
        for entry in std::fs::read_dir(Path::new(&root).join(folder))? {
            let path = entry?.path();
            if let (Some(name), true) = (path.file_name(), path.extension().is_some_and(|e| e == "ron")) {
                files.0.insert(Path::new(folder).join(name), std::fs::read_to_string(&path)?);
            }
        }
    }
    let cases = Cases::new(files);
    (0..cases.count()).for_each(|case| println!("{}", cases.run(case)));
    Ok(())
}
