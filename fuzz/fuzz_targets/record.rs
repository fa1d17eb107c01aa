#![no_main]

#[path = "../inputs.rs"]
#[allow(dead_code, reason = "one of them is called")]
mod inputs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inputs::record(bytes));
