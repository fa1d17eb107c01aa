//! Work on all processors.

use std::thread;

use crate::cli::failure::Failure;

/// Runs `work` in as many threads as there are processors, and returns what each has found. Threads share out among themselves what is
/// to be done.
///
/// # Errors
///
/// The first error of `work`; [`Failure::Other`] with the words `panicked` if it panics.
pub fn on_all_processors<T: Send>(
    work: impl Fn() -> Result<T, Failure> + Sync,
    panicked: &str,
) -> Result<Vec<T>, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(&work)).collect();
        let mut found = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(done) => found.push(done?),
                Err(_) => return Err(Failure::Other(panicked.to_owned())),
            }
        }
        Ok(found)
    })
}
