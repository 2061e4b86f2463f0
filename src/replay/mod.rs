//! Something to look at: recordings of runs, the replay page, pictures without a browser.
