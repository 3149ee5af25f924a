//! The look of pictures, the same in every format: the colours of present things, and of missing ones.
//!
//! Missing things differ from present ones in their border as well as in their tint, so a print without colours tells as much.
//! Knows no format.

use super::drawing::{Shape, ShapeState};

/// The colour of text.
pub(super) const INK: &str = "#1a1a1a";
/// The colour of arrows.
pub(super) const ARROW: &str = "#56606b";
/// The colour behind everything.
pub(super) const PAPER: &str = "#ffffff";
/// The width of borders and arrows.
pub(super) const THIN: f64 = 1.2;
/// The width of the border of the task's outputs.
pub(super) const BOLD: f64 = 2.4;

/// The look of a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeStyle {
    /// The colour inside.
    pub(super) fill: &'static str,
    /// The colour of the border.
    pub(super) border: &'static str,
    /// Whether the border is dashed.
    pub(super) dashed: bool,
}

/// Returns the look of a shape with this state.
pub(super) const fn shape_style(state: Option<ShapeState>) -> ShapeStyle {
    match state {
        None => ShapeStyle { fill: "#f3f5f7", border: "#3a4652", dashed: false },
        Some(ShapeState::There) => ShapeStyle { fill: "#d5e6f5", border: "#1f4e79", dashed: false },
        Some(ShapeState::Away) => ShapeStyle { fill: "#ffffff", border: "#1f4e79", dashed: true },
        Some(ShapeState::Failed) => ShapeStyle { fill: "#fde4e1", border: "#a3241b", dashed: true },
        Some(ShapeState::Running) => {
            ShapeStyle { fill: "#e3f3e4", border: "#1b6e3c", dashed: true }
        }
        Some(ShapeState::Suspended) => {
            ShapeStyle { fill: "#efe7f8", border: "#5d3a8e", dashed: true }
        }
        Some(ShapeState::Missing | ShapeState::Partly(_)) => {
            ShapeStyle { fill: "#fff7e8", border: "#8a5a00", dashed: true }
        }
    }
}

/// The colour of a frame's border.
pub(super) const FRAME: &str = "#9aa5b1";

/// The colour in a frame.
pub(super) const GROUND: &str = "#fafbfc";

/// Returns the share of a shape that is drawn as being there, and its colour, if only a part is.
pub(super) fn present_part(state: Option<ShapeState>) -> Option<(f64, &'static str)> {
    match state {
        Some(ShapeState::Partly(share)) => {
            // A little is to be seen of either part.
            let share = (f64::from(share) / 1000.0).clamp(0.05, 0.95);
            Some((share, shape_style(Some(ShapeState::There)).fill))
        }
        _ => None,
    }
}

/// The states that a legend explains: that of what is away only where something is. What goes on with a call, its shape says
/// in words.
pub(super) fn legend_states(shapes: &[Shape]) -> impl Iterator<Item = ShapeState> {
    let is_away = shapes.iter().any(|it| it.state == Some(ShapeState::Away));
    let away = is_away.then_some(ShapeState::Away);
    [ShapeState::There, ShapeState::Missing].into_iter().chain(away)
}

/// The state_meaning of a state, for a legend.
pub(super) const fn state_meaning(state: ShapeState) -> &'static str {
    match state {
        ShapeState::There => "in the storage",
        ShapeState::Away => "known, away",
        ShapeState::Missing | ShapeState::Failed | ShapeState::Running | ShapeState::Suspended => {
            "not in the storage"
        }
        ShapeState::Partly(_) => "partly in the storage",
    }
}
