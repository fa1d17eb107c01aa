//! How many files the process may open: connections are files too, as are the ledger and the connections to brokers.

use std::fs;

/// The soft limit on open files (`ulimit -n`), if there is one.
pub(super) fn open_file_limit() -> Option<usize> {
    of_limits(&fs::read_to_string("/proc/self/limits").unwrap_or_default())
}

/// The soft limit on open files, in the text of `/proc/self/limits`.
fn of_limits(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            256                  4096                 files     \n";
        assert_eq!(of_limits(limits), Some(256));
        assert_eq!(of_limits(&limits.replace("256", "unlimited")), None);
        assert_eq!(of_limits(""), None);
        assert!(
            open_file_limit().is_some_and(|limit| limit > 10),
            "this machine has one"
        );
    }
}
