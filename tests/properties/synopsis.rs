//! A synopsis through its public face: what leaves, what is read back, and what damage does.

use bernstream_synopsis::Shape;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{
    AxisDescription, Basis, CalibrationBound, Description, ImpliedPrivacy, NoiseDistribution,
    PrivacyDefinition,
};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Synopsis, SynopsisError};

fn description() -> Description {
    serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap()
}

/// A description of a lattice of `degree` on axes `[0, 1], [0, 2], ...`.
fn described(dimensions: u8, degree: u32, order: u32) -> Description {
    let mut about = Description {
        degree,
        order,
        ..description()
    };
    let axis = |i| AxisDescription {
        column: format!("x{i}"),
        min: 0.0,
        max: f64::from(i),
    };
    about.domain = (1..=dimensions).map(axis).collect();
    about
}

fn points(about: &Description) -> usize {
    about.shape().value_count()
}

#[test]
fn what_was_sealed_is_what_is_opened() {
    for (dimensions, degree) in [(1, 1), (1, 40), (2, 20), (3, 6)] {
        let about = described(dimensions, degree, 3);
        let values = (0..points(&about))
            .map(|i| (i as f64).sin() * 1e3)
            .collect();
        let synopsis = Synopsis::new(about, values).unwrap();
        let sealed = synopsis.encode().unwrap();
        assert_eq!(Synopsis::decode_message(&sealed.bytes).unwrap(), synopsis);
    }
}

#[test]
fn json_tells_every_number_to_its_last_bit_and_is_checked_as_a_message_is() {
    let about = described(2, 20, 3);
    let odd = [
        0.1,
        1e-300,
        -5e-324,
        123_456_789.123_456_79,
        f64::MAX,
        2.0_f64.powi(-1074),
        1.0 / 3.0,
    ];
    let values = (0..points(&about))
        .map(|i| (i as f64).sin() * odd[i % odd.len()])
        .collect();
    let synopsis = Synopsis::new(about, values).unwrap();
    let text = synopsis.to_json().unwrap();
    assert_eq!(Synopsis::from_json(&text).unwrap(), synopsis);
    for (from, to) in [
        ("\"format\":1", "\"format\":2"),
        ("\"degree\":20", "\"degree\":19"),
        ("\"values\":", "\"other\":"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(
            matches!(
                Synopsis::from_json(&text.replace(from, to)),
                Err(SynopsisError::Damaged(_))
            ),
            "{from}"
        );
    }
}

#[test]
fn a_message_has_the_same_shape_and_length_whatever_its_values_are() {
    let about = described(2, 5, 2);
    let n = points(&about);
    let seal = |values| {
        Synopsis::new(about.clone(), values)
            .unwrap()
            .encode()
            .unwrap()
    };
    let zero = seal(vec![0.0; n]);
    for value in [-0.0, 1.0, -1e300, f64::MIN_POSITIVE, 5e-324, 0.1] {
        let other = seal(vec![value; n]);
        assert_eq!(
            (other.bytes.len(), &other.headers, &other.key),
            (zero.bytes.len(), &zero.headers, &zero.key)
        );
    }
}

#[test]
fn headers_are_cloud_events_and_name_the_window_and_its_price() {
    let sealed = Synopsis::new(description(), vec![0.0; 3])
        .unwrap()
        .encode()
        .unwrap();
    let headers: Vec<(&str, &str)> = sealed
        .headers
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(sealed.key, "flights/departure-delay/JFK");
    assert_eq!(
        headers,
        [
            ("content-type", "application/vnd.apache.arrow.stream"),
            ("ce_specversion", "1.0"),
            ("ce_id", "3b1f0c7e9a2d4f60/17/departure-delay/JFK"),
            ("ce_source", "/bernstream/flights/departure-delay"),
            ("ce_type", "bernstream.synopsis.v1"),
            ("ce_time", "2013-01-02T06:01:00Z"),
            ("ce_subject", "JFK"),
            ("epsilon", "0.5"),
            ("window_start", "2013-01-01T05:00:00Z"),
            ("window_end", "2013-01-02T05:00:00Z"),
        ]
    );
}

#[test]
fn every_kind_of_price_has_headers_of_its_own_and_no_other_definition() {
    const IMPLIED: &str = r#"{"epsilon":"1.5","delta":"0.000001"}"#;
    let about = |definition: &str, price: &str| -> Description {
        let text = bernstream_synopsis::EXAMPLE
            .replace("\"pure epsilon\"", definition)
            .replace(
                r#""price": "0.5""#,
                &format!(r#""implies": {IMPLIED}, "price": {price}"#),
            )
            .replace(
                r#""spent": "0.5", "total": "1""#,
                &format!(r#""spent": {price}, "total": {price}"#),
            );
        serde_json::from_str(&text).unwrap()
    };
    let pure = r#""0.5""#;
    let both = r#"{"epsilon":"0.5","delta":"0.000000001"}"#;
    let rho = r#"{"rho":"0.01"}"#;
    let slots = r#"{"slots":1}"#;
    let cases = [
        (r#""pure epsilon""#, pure, vec![("epsilon", "0.5")]),
        (
            r#""epsilon-delta""#,
            both,
            vec![
                ("approximate_dp_epsilon", "0.5"),
                ("approximate_dp_delta", "0.000000001"),
            ],
        ),
        (r#""zero-concentrated""#, rho, vec![("zcdp_rho", "0.01")]),
        (r#""gaussian""#, rho, vec![("zcdp_rho", "0.01")]),
        (r#""declared plan""#, slots, vec![("plan_windows", "1")]),
    ];
    for (definition, price, expected) in cases {
        let synopsis = Synopsis::new(about(definition, price), vec![0.0; 3]).unwrap();
        let sealed = synopsis.encode().unwrap();
        let told: Vec<_> = sealed.headers[7..sealed.headers.len() - 2].to_vec();
        assert_eq!(
            told,
            expected
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<Vec<_>>()
        );
        assert_eq!(Synopsis::decode_message(&sealed.bytes).unwrap(), synopsis);
        for wrong in [pure, both, rho, slots]
            .into_iter()
            .filter(|wrong| *wrong != price)
        {
            let error = Synopsis::new(about(definition, wrong), vec![0.0; 3])
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("its prices are not those of its definition"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_declared_plan_says_what_it_implies() {
    let mut about = description();
    about.privacy.definition = PrivacyDefinition::Planned;
    about.privacy.price = Price::SLOT;
    (about.privacy.blocks[0].spent, about.privacy.blocks[0].total) =
        (Price::Slots(17), Price::Slots(24));
    let error = Synopsis::new(about.clone(), vec![0.0; 3])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("does not say what epsilon and delta its plan has"),
        "{error}"
    );
    about.privacy.implies = Some(ImpliedPrivacy {
        epsilon: "1.5".parse().unwrap(),
        delta: "0.000001".parse().unwrap(),
    });
    let synopsis = Synopsis::new(about, vec![0.0; 3]).unwrap();
    assert_eq!(
        Synopsis::decode_message(&synopsis.encode().unwrap().bytes).unwrap(),
        synopsis
    );
    let written = serde_json::to_string(synopsis.description()).unwrap();
    assert!(
        written.contains(r#""implies":{"epsilon":"1.5","delta":"0.000001"}"#),
        "{written}"
    );
}

#[test]
fn without_a_key_neither_message_key_nor_subject_has_one() {
    let sealed = Synopsis::new(
        Description {
            key: None,
            ..description()
        },
        vec![0.0; 3],
    )
    .unwrap()
    .encode()
    .unwrap();
    assert_eq!(sealed.key, "flights/departure-delay");
    assert!(!sealed.headers.iter().any(|(name, _)| name == "ce_subject"));
    assert_eq!(
        Synopsis::decode_message(&sealed.bytes)
            .unwrap()
            .description()
            .key,
        None
    );
}

#[test]
fn readers_ignore_fields_that_they_do_not_know() {
    let text = bernstream_synopsis::EXAMPLE.replacen('{', r#"{ "added_later": [1],"#, 1);
    assert_eq!(
        serde_json::from_str::<Description>(&text).unwrap(),
        description()
    );
}

#[test]
fn the_document_is_written_as_it_is_documented() {
    let written = serde_json::to_value(description()).unwrap();
    let documented: serde_json::Value = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
    assert_eq!(written, documented);
}

/// Noise for a sampled sensitivity is never taken for plain privacy, nor the reverse.
#[test]
fn a_calibration_that_does_not_fit_the_definition_is_refused() {
    let mut about = description();
    about.noise.calibrated = CalibrationBound::Sampled;
    let error = Synopsis::new(about, vec![1.0, 2.0, 3.0])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("its noise and its definition of privacy do not fit"),
        "{error}"
    );
}

#[test]
fn every_truncation_is_a_clear_error() {
    let bytes = Synopsis::new(description(), vec![1.0, 2.0, 3.0])
        .unwrap()
        .encode()
        .unwrap()
        .bytes;
    for length in 0..bytes.len() {
        let error = Synopsis::decode_message(&bytes[..length]).expect_err("a message cut short");
        assert!(error.to_string().starts_with("not a synopsis: "), "{error}");
    }
}

#[test]
fn no_mutated_byte_gets_a_panic_or_an_impossible_number_out() {
    let bytes = Synopsis::new(description(), vec![1.0, 2.0, 3.0])
        .unwrap()
        .encode()
        .unwrap()
        .bytes;
    std::panic::set_hook(Box::new(|_| {}));
    let mut opened = 0;
    for place in 0..bytes.len() {
        for value in [
            0x00,
            0x01,
            0x7f,
            0x80,
            0xff,
            bytes[place] ^ 0x10,
            bytes[place].wrapping_add(1),
        ] {
            let mut mutated = bytes.clone();
            mutated[place] = value;
            if let Ok(synopsis) = Synopsis::decode_message(&mutated) {
                opened += 1;
                assert_eq!(points(synopsis.description()), synopsis.values().len());
                assert!(synopsis.values().iter().all(|v| v.is_finite()));
            }
        }
    }
    drop(std::panic::take_hook());
    // Padding, words and the values themselves can change unnoticed: nothing signs a message.
    assert!(opened > 0 && opened < 7 * bytes.len());
}

#[test]
fn columns_that_disagree_with_the_description_are_refused() {
    let about = description();
    let bytes = Synopsis::new(about.clone(), vec![1.0, 2.0, 3.0])
        .unwrap()
        .encode()
        .unwrap()
        .bytes;
    let start = about.window.start.micros().to_le_bytes();
    let end = about.window.end.micros().to_le_bytes();
    for column in [
        &start[..],
        &end,
        &about.ledger.sequence.to_le_bytes(),
        b"JFK\0",
    ] {
        // The last place: the description comes first.
        let place = bytes
            .windows(column.len())
            .rposition(|window| window == column)
            .unwrap();
        let mut mutated = bytes.clone();
        mutated[place] += 1;
        let error = Synopsis::decode_message(&mutated).expect_err("a column that was changed");
        assert!(error.to_string().contains("disagree"), "{error}");
    }
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [
        &b""[..],
        b"ARROW1\0\0",
        &[0xff; 64],
        &[0; 4096],
        b"{\"format\": 1}",
    ] {
        assert!(matches!(
            Synopsis::decode_message(bytes),
            Err(SynopsisError::Damaged(_))
        ));
    }
    let mut twice = Synopsis::new(description(), vec![0.0; 3])
        .unwrap()
        .encode()
        .unwrap()
        .bytes;
    twice.extend_from_within(..);
    assert!(Synopsis::decode_message(&twice).is_err());
}

#[test]
fn impossible_synopses_cannot_be_made() {
    let fails =
        |about: Description, values: Vec<f64>| assert!(Synopsis::new(about, values).is_err());
    fails(description(), vec![0.0; 2]);
    fails(description(), vec![0.0, f64::NAN, 0.0]);
    fails(description(), vec![0.0, f64::INFINITY, 0.0]);
    fails(
        Description {
            format: 2,
            ..description()
        },
        vec![0.0; 3],
    );
    fails(
        Description {
            degree: 0,
            ..description()
        },
        vec![0.0],
    );
    fails(
        Description {
            order: 0,
            ..description()
        },
        vec![0.0; 3],
    );
    fails(
        Description {
            order: u32::MAX,
            ..description()
        },
        vec![0.0; 3],
    );
    fails(described(0, 2, 1), vec![0.0]);
    fails(described(4, 1, 1), vec![0.0; 16]);
    let mut about = description();
    about.band.weights = vec![1.0, 0.0];
    fails(about, vec![0.0; 3]);
}

#[test]
fn values_are_in_natural_units_on_every_axis() {
    // x1 in [0, 1], x2 in [0, 2], x3 in [0, 3]; linear functions are reproduced at every order.
    for order in [1, 2, 7] {
        let about = described(3, 4, order);
        let f = |x: f64, y: f64, z: f64| 1.0 + 2.0 * x - y + 10.0 * z;
        let n = |i: u32| f64::from(i) / 4.0;
        let lattice = (0..125).map(|i| (n(i / 25), n(i / 5 % 5), n(i % 5)));
        let values = lattice.map(|(x, y, z)| f(x, 2.0 * y, 3.0 * z)).collect();
        let synopsis = Synopsis::new(about, values).unwrap();
        assert!((synopsis.evaluate(&[0.3, 1.7, 2.9]).unwrap() - f(0.3, 1.7, 2.9)).abs() < 1e-12);
        // The integral of a linear function is its middle value times the volume.
        assert!((synopsis.total_mass().unwrap() - 6.0 * f(0.5, 1.0, 1.5)).abs() < 1e-10);
    }
}

#[test]
fn points_outside_the_domain_or_of_another_dimension_are_errors() {
    let synopsis = Synopsis::new(description(), vec![0.0; 3]).unwrap();
    for value in [-30.001, 180.001, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            synopsis.evaluate(&[value]),
            Err(SynopsisError::OutsideDomain { .. })
        ));
        assert!(matches!(
            synopsis.half_width(&[value]),
            Err(SynopsisError::OutsideDomain { .. })
        ));
    }
    assert!(synopsis.evaluate(&[-30.0]).is_ok() && synopsis.evaluate(&[180.0]).is_ok());
    assert!(matches!(
        synopsis.evaluate(&[]),
        Err(SynopsisError::Dimensions {
            given: 0,
            expected: 1
        })
    ));
    assert!(matches!(
        synopsis.evaluate(&[1.0, 2.0]),
        Err(SynopsisError::Dimensions {
            given: 2,
            expected: 1
        })
    ));
    assert!(matches!(
        synopsis.evaluator(0),
        Err(SynopsisError::Order { order: 0 })
    ));
}

#[test]
fn the_band_grows_with_the_noise_and_covers_the_grid() {
    let band = Band::simulate(
        &Shape {
            dimensions: 1,
            degree: 10,
            basis: Basis::Bernstein,
        },
        NoiseDistribution::DiscreteLaplace,
        2,
    );
    let mut noise = description().noise;
    noise.grid = 0.0;
    assert_eq!(
        band.scaled_to_noise(&noise).half_width,
        band.half_width * noise.scale
    );
    noise.grid = 1e-3;
    let surcharge = band.scaled_to_noise(&noise).half_width - band.half_width * noise.scale;
    assert!(surcharge > 1e-3 * band.norm, "{surcharge}");
}
