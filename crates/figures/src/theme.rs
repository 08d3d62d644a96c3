//! Colours: the same names in every picture, with values for light and for dark.

use std::fmt::Write as _;

/// For which background a picture is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Theme {
    /// Light, or dark where the reader's system asks for it. Browsers heed that; programs that draw
    /// SVG files without being one may not.
    Auto,
    /// Dark text on white.
    Light,
    /// Light text on nearly black.
    Dark,
}

/// Number of colours that can be told apart, by most colour-blind readers too. Each has a marker of
/// its own shape, for print in black and white.
pub const COLOURS: usize = 8;

/// A name, and its colour on light and on dark.
///
/// The hues are Okabe and Ito's (Color Universal Design, 2008), with more contrast: at least 3 to 1
/// against the background, as WCAG 2.1 (1.4.11) wants it for graphics.
pub(crate) const NAMES: [(&str, &str, &str); COLOURS + 6] = [
    ("s0", "#0069b3", "#58b2f0"),
    ("s1", "#c94f00", "#ff9a4d"),
    ("s2", "#00815c", "#2fcb9b"),
    ("s3", "#a8478c", "#e796cb"),
    ("s4", "#7d6100", "#e3c53f"),
    ("s5", "#4b4f58", "#b9bec8"),
    ("s6", "#6a4fc2", "#a898ff"),
    ("s7", "#a3242b", "#ff7a78"),
    ("ink", "#1b1f24", "#e8eaed"),
    ("soft", "#59616b", "#a4acb6"),
    ("rule", "#d9dde2", "#3a4048"),
    ("paper", "#ffffff", "#15181c"),
    ("sheet", "#f5f6f8", "#1e2227"),
    ("link", "#005a9c", "#7cc0f5"),
];

/// CSS declarations `--name:value` of all colours.
pub(crate) fn variables(dark: bool) -> String {
    let mut css = String::new();
    for (name, light_value, dark_value) in NAMES {
        let value = if dark { dark_value } else { light_value };
        let _ = write!(css, "--{name}:{value};");
    }
    css
}

/// The rules of the classes that charts use, with the value of each colour given by `value`.
pub(crate) fn chart_rules(value: impl Fn(&str) -> String) -> String {
    let mut css = format!(
        ".t{{fill:{ink};}}.u{{fill:{soft};}}.g{{stroke:{rule};stroke-width:1;}}.q{{opacity:.45;}}\
         .f{{stroke:{soft};stroke-width:1;}}.p{{fill:{paper};}}\
         .h{{paint-order:stroke;stroke:{paper};stroke-width:3;stroke-linejoin:round;}}\
         .m{{stroke:{ink};stroke-width:1;stroke-dasharray:2 3;}}\
         .l{{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round;}}\
         .r{{stroke-dasharray:6 4;stroke-width:1.5;}}.w{{stroke-width:1.25;fill:none;}}",
        ink = value("ink"),
        soft = value("soft"),
        rule = value("rule"),
        paper = value("paper"),
    );
    for slot in 0..COLOURS {
        let colour = value(&format!("s{slot}"));
        let paper = value("paper");
        let _ = write!(
            css,
            ".s{slot}{{stroke:{colour};}}.a{slot}{{fill:{colour};fill-opacity:.2;}}\
             .d{slot}{{fill:{colour};stroke:{paper};stroke-width:.6;}}\
             .o{slot}{{fill:{paper};stroke:{colour};stroke-width:1.5;}}"
        );
    }
    css
}

/// The value of a colour.
pub(crate) fn colour(name: &str, dark: bool) -> String {
    let (_, light_value, dark_value) =
        NAMES.iter().find(|(known, ..)| *known == name).expect("a name of the list");
    if dark { dark_value } else { light_value }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2.1 defines it.
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_colour_stands_out_from_its_background() {
        for dark in [false, true] {
            let paper = colour("paper", dark);
            for slot in 0..COLOURS {
                let found = contrast(&colour(&format!("s{slot}"), dark), &paper);
                assert!(found >= 3.0, "s{slot}, dark: {dark}: {found:.2}");
            }
            for text in ["ink", "soft", "link"] {
                let found = contrast(&colour(text, dark), &colour("sheet", dark));
                assert!(found >= 4.5, "{text}, dark: {dark}: {found:.2}");
            }
        }
    }
}
