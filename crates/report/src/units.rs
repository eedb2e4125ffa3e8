//! Figures with three significant digits and the unit that suits them.
//!
//! Invariant: rounding moves up to the next unit (`999.9 kB` is `1 MB`, `59.99 s` is `1 min`), so
//! that no figure reads `1000 kB` or `60 s`.

use std::time::Duration;

/// An amount of data in powers of ten, as drives are sold and PostgreSQL's WAL is not: `14.2 GB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", figure(value), UNITS[unit])
}

/// A whole number in groups of three: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A time: `350 µs`, `12.5 ms`, `3.2 s`, `2 min 5 s`, `3 h 12 min`, `4 d 3 h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time.is_zero() {
        return "0 s".to_owned();
    }
    for (unit, name) in [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms")] {
        if seconds / unit < 999.5 {
            return format!("{} {name}", figure(seconds / unit));
        }
    }
    if seconds < 59.95 {
        return format!("{} s", figure(seconds));
    }
    let whole = time.as_secs().saturating_add(u64::from(time.subsec_millis() >= 500));
    let (minutes, hours) = (whole.div_ceil(30) / 2, whole.div_ceil(1800) / 2);
    let two = |big: u64, name: &str, small: u64, other: &str| match small {
        0 => format!("{big} {name}"),
        small => format!("{big} {name} {small} {other}"),
    };
    match whole {
        0..3600 => two(whole / 60, "min", whole % 60, "s"),
        3600..86_400 => two(minutes / 60, "h", minutes % 60, "min"),
        _ => two(hours / 24, "d", hours % 24, "h"),
    }
}

/// A change in percent with its sign: `+1.8 %`, `−0.4 %`, `0 %`.
pub fn percent(percent: f64) -> String {
    match figure(percent.abs()).as_str() {
        "0" => "0 %".to_owned(),
        shown if percent < 0.0 => format!("−{shown} %"),
        shown => format!("+{shown} %"),
    }
}

/// A number with three significant digits and no needless zeros, at most three decimals: `0.012`,
/// `2.5`, `118`, `4,318`.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let size = value.abs();
    if size >= 999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    let decimals = match size {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let short = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_data_have_three_digits() {
        for (amount, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (14_249_000_000, "14.2 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(amount), shown);
        }
    }

    #[test]
    fn whole_numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1000, 123_456, 1_234_567].map(count).into();
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn times_move_up_when_they_are_rounded() {
        for (seconds, shown) in [
            (0.0, "0 s"),
            (350e-6, "350 µs"),
            (0.0125, "12.5 ms"),
            (0.9996, "1 s"),
            (3.2, "3.2 s"),
            (59.94, "59.9 s"),
            (59.99, "1 min"),
            (125.4, "2 min 5 s"),
            (3599.6, "1 h"),
            (11_525.0, "3 h 12 min"),
            (86_399.0, "24 h"),
            (86_400.0, "1 d"),
            (356_400.0, "4 d 3 h"),
        ] {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), shown, "{seconds}");
        }
        assert!(!duration(Duration::MAX).is_empty());
    }

    #[test]
    fn changes_have_their_sign() {
        assert_eq!(percent(1.84), "+1.84 %");
        assert_eq!(percent(-0.0004), "0 %");
        assert_eq!(percent(-12.34), "−12.3 %");
        assert_eq!(percent(f64::INFINITY), "+inf %");
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.0123, "0.012"),
            (2.5, "2.5"),
            (9.996, "10"),
            (117.6, "118"),
            (100.0, "100"),
            (4318.4, "4,318"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(figure(value), shown, "{value}");
        }
        assert_eq!(figure(f64::NAN), "NaN");
    }
}
