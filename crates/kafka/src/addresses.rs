//! The addresses of a cluster, as people write them.

/// The addresses, as they stand.
///
/// # Errors
///
/// A description of what is wrong with one of them.
pub fn addresses(text: &str) -> Result<String, String> {
    for address in text.split(',') {
        check_address(address.trim())?;
    }
    Ok(text.to_owned())
}

fn check_address(address: &str) -> Result<(), String> {
    if address.is_empty() {
        return Err(
            "an address is missing: each is a host and a port, and a comma stands between two"
                .to_owned(),
        );
    }
    if address.contains("://") {
        return Err(format!(
            "{address:?} is a URL: an address is a host and a port, such as \"localhost:9092\""
        ));
    }
    if address.contains(|c: char| c.is_whitespace() || ";/\"'".contains(c)) {
        return Err(format!(
            "{address:?} is not a host and a port: a comma stands between two addresses"
        ));
    }
    match address.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(())
        }
        _ => Err(format!(
            "{address:?} has no port: that of Kafka is mostly 9092"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for sound in [
            "localhost:9092",
            "10.0.0.1:9092, two.example:19092",
            "[::1]:9092",
        ] {
            assert_eq!(addresses(sound).as_deref(), Ok(sound));
        }
        let why = |text| addresses(text).unwrap_err();
        for url in ["kafka://localhost:9092", "a:9092,http://b:9092"] {
            assert!(why(url).contains("is a URL"), "{url}");
        }
        for bare in [
            "localhost",
            "a:9092,b",
            "a:",
            ":9092",
            "a:99999",
            "a:0",
            "$KAFKA",
        ] {
            assert!(why(bare).contains("has no port"), "{bare}");
        }
        for list in ["a:9092;b:9092", "a:9092 b:9092", "a:9092/"] {
            assert!(why(list).contains("a comma stands between"), "{list}");
        }
        assert!(
            ["", "a:9092,"]
                .map(why)
                .iter()
                .all(|why| why.contains("is missing"))
        );
    }
}
