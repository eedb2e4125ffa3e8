//! Text and numbers on their way into a page.
//!
//! Invariant: no control character and nothing that turns the direction of writing gets through; a
//! number in a drawing is finite.

/// Markup is escaped where it is made.
pub(super) use crate::plain as safe;

/// A coordinate with one decimal.
pub(super) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// About how wide `text` is at a size of 12 px, rather too much: no font is known here, and one of
/// the widest is DejaVu Sans.
pub(super) fn width(text: &str) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '|' | '\'' => 3.6,
        ' ' | '.' | ',' | ':' | ';' | '!' | '-' | '/' | '(' | ')' | '[' | ']' | 'f' | 'r' | 't'
        | 'I' => 4.8,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.7,
        '<' | '>' | '=' | '+' | '~' | '#' | '−' | '…' => 10.1,
        c if c.is_ascii_uppercase() => 8.6,
        c if c.is_ascii() => 7.6,
        _ => 10.0,
    };
    text.chars().map(of).sum()
}

/// The same for a name that stands out.
pub(super) fn bold_width(text: &str) -> f64 {
    width(text) * 1.13
}

/// As much of `text` as `room` pixels hold, with `…` if that is not all.
pub(super) fn fitted(text: &str, room: f64) -> String {
    let text = safe(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if width(&short) + width("…") > room {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// The same for a name that stands out.
pub(super) fn bold_fitted(text: &str, room: f64) -> String {
    fitted(text, room / 1.13)
}

/// A name for a file: lower case, with dashes.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
        if slug.len() >= 60 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "table".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        let shown = [1.0, 2.25, -0.01, f64::NAN, f64::INFINITY].map(px);
        assert_eq!(shown, ["1", "2.2", "0", "0", "0"]);
    }

    #[test]
    fn long_text_ends_with_dots() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted("a name that is much too long", 80.0);
        assert!(cut.ends_with('…') && width(&cut) <= 80.0, "{cut}");
        assert_eq!(fitted("x", 0.0), "…");
    }

    #[test]
    fn file_names_are_tame() {
        assert_eq!(slug("Rounds, over <time>"), "rounds-over-time");
        assert_eq!(slug("../../"), "table");
    }
}
