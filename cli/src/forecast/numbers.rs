//! Numbers as people read them.

/// A whole number with commas; one below ten with two digits behind the point.
pub(super) fn count(number: f64) -> String {
    if number < 10.0 && number.fract() > 1e-9 {
        return format!("{number:.2}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn money(dollars: f64) -> String {
    if dollars >= 100.0 { count(dollars) } else { format!("{dollars:.2}") }
}

/// A time in the unit that fits it.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let counts = [0.0, 1.0, 1.5, 999.0, 1_000.0, 43_115_761.0].map(count);
        assert_eq!(counts, ["0", "1", "1.50", "999", "1,000", "43,115,761"]);
        assert_eq!([0.004, 12.345, 22_000.0].map(money), ["0.00", "12.35", "22,000"]);
        assert_eq!([0.3, 600.0, 7_200.0, 864_000.0].map(time), ["0.3 s", "10 min", "2.0 h", "10.0 d"]);
    }
}
