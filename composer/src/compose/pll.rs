//! PLL settings: an exhaustive search for the best ones.
//!
//! All arithmetic is exact (fractions in `u128`), so a result does not depend on rounding.
//! Of all settings within the limits [`solve`] takes, in this order:
//! 1. the smallest worst frequency error over the asked clocks,
//! 2. the smallest worst phase error,
//! 3. the highest phase detector frequency (least jitter, quickest lock),
//! 4. the VCO nearest to the middle of its range,
//! 5. the lowest VCO, the smallest input divider, no output spent on feedback alone, the lowest output.

use std::cmp::Ordering;
use std::fmt;

/// How far off a phase may be, in millidegrees. A phase is asked to centre an edge in a data eye; 5 degrees
/// of a 125 MHz clock are 0.11 ns.
pub const PHASE_TOLERANCE_MDEG: u64 = 5_000;

/// Which primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PllStyle {
    /// Lattice ECP5: feedback from output 0 (CLKOP), so VCO = PFD x feedback divider x that output's divider.
    Ehxplll,
    /// AMD MMCM: feedback from an output of its own, so VCO = PFD x feedback divider.
    Mmcm,
}

/// What a PLL can do. Ranges are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PllLimits {
    /// Primitive.
    pub style: PllStyle,
    /// Input frequency in Hz.
    pub input_hz: (u64, u64),
    /// Phase detector frequency in Hz.
    pub pfd_hz: (u64, u64),
    /// VCO frequency in Hz.
    pub vco_hz: (u64, u64),
    /// Output frequency in Hz.
    pub output_hz: (u64, u64),
    /// Input divider.
    pub input_div: (u32, u32),
    /// Feedback divider in eighths.
    pub feedback_eighths: (u32, u32),
    /// Output dividers in eighths.
    pub output_eighths: (u32, u32),
    /// Number of outputs.
    pub outputs: u32,
    /// Whether the feedback divider and that of output 0 go in steps of 1/8; all others are whole.
    pub fractional: bool,
}

/// A clock that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockAsk {
    /// Frequency in Hz.
    pub hz: u64,
    /// How far off it may be, parts per million.
    pub tolerance_ppm: u32,
    /// Phase in millidegrees of its own period, against the other clocks of the PLL; positive is later.
    pub phase_mdeg: i32,
}

/// An exact frequency: `num / den` Hz.
#[derive(Clone, Copy, Debug)]
pub struct Hz {
    /// Numerator.
    pub num: u128,
    /// Denominator, not 0.
    pub den: u128,
}

impl Hz {
    fn new(num: u128, den: u128) -> Hz {
        let divisor = gcd(num, den).max(1);
        Hz { num: num / divisor, den: (den / divisor).max(1) }
    }

    /// To the nearest Hz.
    pub fn round(self) -> u64 {
        u64::try_from((self.num + self.den / 2) / self.den).unwrap_or(u64::MAX)
    }

    /// As a floating point number, for messages.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    fn at_least(self, hz: u64) -> bool {
        self.num >= u128::from(hz) * self.den
    }

    fn at_most(self, hz: u64) -> bool {
        self.num <= u128::from(hz) * self.den
    }

    fn within(self, range: (u64, u64)) -> bool {
        self.at_least(range.0) && self.at_most(range.1)
    }
}

impl PartialEq for Hz {
    fn eq(&self, other: &Hz) -> bool {
        self.num * other.den == other.num * self.den
    }
}

impl Eq for Hz {}

impl fmt::Display for Hz {
    /// MHz with as many decimals as it needs, at most six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.6}", self.as_f64() / 1e6);
        write!(f, "{} MHz", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A relative error as a fraction.
#[derive(Clone, Copy, Debug)]
struct Error {
    num: u128,
    den: u128,
}

impl Error {
    const NONE: Error = Error { num: 0, den: 1 };

    fn of(got: Hz, asked: u64) -> Error {
        let want = u128::from(asked) * got.den;
        Error { num: got.num.abs_diff(want), den: want.max(1) }
    }

    fn compare(self, other: Error) -> Ordering {
        (self.num * other.den).cmp(&(other.num * self.den))
    }

    fn within_ppm(self, ppm: u32) -> bool {
        self.num * 1_000_000 <= self.den * u128::from(ppm)
    }

    fn ppm(self) -> f64 {
        self.num as f64 / self.den as f64 * 1e6
    }

    fn max(self, other: Error) -> Error {
        if self.compare(other) == Ordering::Less { other } else { self }
    }
}

/// One output of a [`PllPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PllOutput {
    /// Index of the ask; `None` for an output that is only the feedback.
    pub ask: Option<usize>,
    /// Output of the primitive, and `clk<port>` of `io::pll`.
    pub port: u32,
    /// Divider in eighths.
    pub divider_eighths: u32,
    /// Delay in eighths of a VCO period, less than one output period.
    pub shift_eighths: u32,
    /// Frequency.
    pub hz: Hz,
    /// Phase that comes out, in millidegrees, 0 to 360,000.
    pub phase_mdeg: u64,
}

impl PllOutput {
    /// `CPHASE` of an EHXPLLL: whole VCO periods, where "divider - 1" is phase 0.
    pub fn cphase(&self) -> u32 {
        let divider = (self.divider_eighths / 8).max(1);
        (divider - 1 + self.shift_eighths / 8) % divider
    }

    /// `FPHASE` of an EHXPLLL: eighths of a VCO period.
    pub fn fphase(&self) -> u32 {
        self.shift_eighths % 8
    }
}

/// Settings of one PLL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PllPlan {
    /// Primitive.
    pub style: PllStyle,
    /// Input frequency in Hz.
    pub input_hz: u64,
    /// Input divider.
    pub input_div: u32,
    /// Feedback divider in eighths.
    pub feedback_eighths: u32,
    /// Phase detector frequency.
    pub pfd: Hz,
    /// VCO frequency.
    pub vco: Hz,
    /// Outputs in the order of their ports.
    pub outputs: Vec<PllOutput>,
}

impl PllPlan {
    /// The output that answers an ask.
    pub fn output_of(&self, ask: usize) -> Option<&PllOutput> {
        self.outputs.iter().find(|o| o.ask == Some(ask))
    }

    /// Parameters of `io::pll` by name, all of them integers. Outputs that are not used have `O<n>_EIGHTHS` = 0.
    pub fn parameters(&self) -> Vec<(String, u64)> {
        let mut list = vec![
            ("INPUT_PS".to_owned(), 1_000_000_000_000 / self.input_hz.max(1)),
            ("INPUT_DIV".to_owned(), u64::from(self.input_div)),
            ("FEEDBACK_EIGHTHS".to_owned(), u64::from(self.feedback_eighths)),
        ];
        let ports = match self.style {
            PllStyle::Ehxplll => 4,
            PllStyle::Mmcm => 7,
        };
        for port in 0..ports {
            let output = self.outputs.iter().find(|o| o.port == port);
            list.push((format!("O{port}_EIGHTHS"), output.map_or(0, |o| u64::from(o.divider_eighths))));
            list.push((format!("O{port}_SHIFT"), output.map_or(0, |o| u64::from(o.shift_eighths))));
        }
        list
    }

    /// Worst frequency error in parts per million.
    pub fn worst_ppm(&self, asks: &[ClockAsk]) -> f64 {
        let errors = self.outputs.iter().filter_map(|o| Some(Error::of(o.hz, asks.get(o.ask?)?.hz)));
        errors.fold(Error::NONE, Error::max).ppm()
    }
}

/// Why there are no settings.
#[derive(Clone, Debug, PartialEq)]
pub enum PllMiss {
    /// The input frequency is out of range.
    Input {
        /// Frequency in Hz.
        hz: u64,
        /// What is allowed.
        range: (u64, u64),
    },
    /// More clocks than outputs.
    TooMany {
        /// Clocks asked for.
        asked: usize,
        /// Outputs there are.
        outputs: usize,
    },
    /// A clock cannot be made near enough.
    Clock {
        /// Which ask.
        ask: usize,
        /// What was asked.
        asked: ClockAsk,
        /// Nearest frequency in Hz that can be reached, with the other clocks unless `alone`; 0 if none can.
        nearest_hz: u64,
        /// How far off that is, parts per million.
        off_ppm: f64,
        /// Whether it cannot be reached even without the other clocks.
        alone: bool,
    },
    /// The frequencies can be made, but not this phase.
    Phase {
        /// Which ask.
        ask: usize,
        /// What was asked.
        asked: ClockAsk,
        /// Nearest phase in millidegrees.
        nearest_mdeg: u64,
    },
}

impl fmt::Display for PllMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mhz = |hz: u64| Hz::new(u128::from(hz), 1);
        match self {
            PllMiss::Input { hz, range } => {
                write!(f, "a PLL cannot take {}: its input goes from {} to {}", mhz(*hz), mhz(range.0), mhz(range.1))
            }
            PllMiss::TooMany { asked, outputs } => write!(f, "{asked} clocks are asked for, the PLLs have {outputs} outputs"),
            PllMiss::Clock { asked, nearest_hz: 0, .. } => write!(f, "no PLL setting makes {} here", mhz(asked.hz)),
            PllMiss::Clock { asked, nearest_hz, off_ppm, alone, .. } => write!(
                f,
                "{} cannot be reached within {} ppm{}: the nearest is {}, {:.0} ppm off",
                mhz(asked.hz),
                asked.tolerance_ppm,
                if *alone { "" } else { " together with the other clocks" },
                mhz(*nearest_hz),
                off_ppm
            ),
            PllMiss::Phase { asked, nearest_mdeg, .. } => write!(
                f,
                "{} cannot have a phase of {} degrees: the nearest is {}",
                mhz(asked.hz),
                f64::from(asked.phase_mdeg) / 1000.0,
                *nearest_mdeg as f64 / 1000.0
            ),
        }
    }
}

impl std::error::Error for PllMiss {}

/// A candidate: settings with what they are compared by.
#[derive(Clone)]
struct Candidate {
    plan: PllPlan,
    error: Error,
    phase_error: u64,
    within: bool,
    middle_off: Hz,
    spare: bool,
}

impl Candidate {
    fn compare(&self, other: &Candidate) -> Ordering {
        let hz = |a: Hz, b: Hz| (a.num * b.den).cmp(&(b.num * a.den));
        other
            .within
            .cmp(&self.within)
            .then_with(|| self.error.compare(other.error))
            .then_with(|| self.phase_error.cmp(&other.phase_error))
            .then_with(|| hz(other.plan.pfd, self.plan.pfd))
            .then_with(|| hz(self.middle_off, other.middle_off))
            .then_with(|| hz(self.plan.vco, other.plan.vco))
            .then_with(|| self.plan.input_div.cmp(&other.plan.input_div))
            .then_with(|| self.spare.cmp(&other.spare))
            .then_with(|| {
                let key = |c: &Candidate| c.plan.outputs.iter().map(|o| (o.ask, o.divider_eighths)).collect::<Vec<_>>();
                key(self).cmp(&key(other))
            })
    }
}

/// A divider chosen for an ask.
#[derive(Clone, Copy)]
struct Choice {
    eighths: u32,
    shift: u32,
    hz: Hz,
    error: Error,
    phase_mdeg: u64,
    phase_error: u64,
}

/// Phase as 0 to 359,999 millidegrees.
fn wrap_phase(mdeg: i32) -> u64 {
    u64::from(mdeg.rem_euclid(360_000).unsigned_abs())
}

/// What a divider gives for an ask. A divider that is not whole can only have phase 0.
fn choice(vco: Hz, eighths: u32, ask: ClockAsk) -> Choice {
    let hz = Hz::new(vco.num * 8, vco.den * u128::from(eighths));
    let want = wrap_phase(ask.phase_mdeg);
    // One output period is `eighths` eighths of a VCO period.
    let period = u64::from(eighths);
    let shift = if eighths % 8 == 0 { (want * period + 180_000) / 360_000 % period } else { 0 };
    let phase_mdeg = (shift * 360_000 + period / 2) / period;
    let apart = phase_mdeg.abs_diff(want);
    let phase_error = apart.min(360_000 - apart.min(360_000));
    Choice { eighths, shift: shift as u32, hz, error: Error::of(hz, ask.hz), phase_mdeg, phase_error }
}

impl PllLimits {
    /// Smallest and largest output divider, in units of `step` eighths, that keep the output in range.
    fn divider_range(&self, vco: Hz, step: u32) -> Option<(u128, u128)> {
        let unit = vco.den * u128::from(step);
        let low = (vco.num * 8).div_ceil(unit * u128::from(self.output_hz.1.max(1)));
        let high = vco.num * 8 / (unit * u128::from(self.output_hz.0.max(1)));
        let low = low.max(u128::from(self.output_eighths.0.div_ceil(step))).max(1);
        let high = high.min(u128::from(self.output_eighths.1 / step));
        (low <= high).then_some((low, high))
    }

    /// The divider that comes nearest to the ask.
    fn best_divider(&self, vco: Hz, ask: ClockAsk, step: u32) -> Option<Choice> {
        let (low, high) = self.divider_range(vco, step)?;
        let ideal = vco.num * 8 / (vco.den * u128::from(step) * u128::from(ask.hz.max(1)));
        // The error falls towards the ideal and rises after it, so its two neighbours suffice.
        [ideal, ideal + 1]
            .map(|d| choice(vco, d.clamp(low, high) as u32 * step, ask))
            .into_iter()
            .reduce(|a, b| if rank(&b, &a) == Ordering::Less { b } else { a })
    }
}

fn rank(a: &Choice, b: &Choice) -> Ordering {
    a.error.compare(b.error).then_with(|| a.phase_error.cmp(&b.phase_error)).then_with(|| a.eighths.cmp(&b.eighths))
}

/// The best settings of one PLL for all of `asks`.
///
/// # Errors
/// The first clock that cannot be had, with the nearest frequency that can.
pub fn solve(limits: &PllLimits, input_hz: u64, asks: &[ClockAsk]) -> Result<PllPlan, PllMiss> {
    if input_hz < limits.input_hz.0.max(1) || input_hz > limits.input_hz.1 {
        return Err(PllMiss::Input { hz: input_hz, range: limits.input_hz });
    }
    if asks.len() > limits.outputs as usize {
        return Err(PllMiss::TooMany { asked: asks.len(), outputs: limits.outputs as usize });
    }
    // Beyond this the exact fractions would not fit; no PLL is near it.
    if let Some((index, wild)) = asks.iter().enumerate().find(|(_, a)| a.hz == 0 || a.hz > 100_000_000_000) {
        let nearest_hz = wild.hz.clamp(limits.output_hz.0, limits.output_hz.1);
        let off_ppm = if wild.hz == 0 { 1e6 } else { nearest_hz.abs_diff(wild.hz) as f64 / wild.hz as f64 * 1e6 };
        return Err(PllMiss::Clock { ask: index, asked: *wild, nearest_hz, off_ppm, alone: true });
    }
    let best = search(limits, input_hz, asks);
    if let Some(best) = &best
        && best.within
    {
        return Ok(best.plan.clone());
    }
    Err(miss(limits, input_hz, asks, best.as_ref()))
}

/// Settings of as few PLLs as possible, at most `plls`, that share an input. Clocks with a phase stay in the PLL of the first ask.
/// Of several ways to share the clocks out, the one with the smallest worst error, then that which keeps more clocks in the first PLL.
/// The asks of a plan are numbered as in `asks`.
///
/// # Errors
/// As [`solve`].
pub fn solve_all(limits: &PllLimits, plls: u64, input_hz: u64, asks: &[ClockAsk]) -> Result<Vec<PllPlan>, PllMiss> {
    let first = match solve(limits, input_hz, asks) {
        Ok(plan) => return Ok(vec![plan]),
        Err(miss) => miss,
    };
    let most = limits.outputs as usize * 2;
    if plls < 2 || asks.len() < 2 || matches!(first, PllMiss::Input { .. }) {
        return Err(first);
    }
    if asks.len() > most {
        return Err(PllMiss::TooMany { asked: asks.len(), outputs: most });
    }
    let mut best: Option<(f64, Vec<PllPlan>)> = None;
    // Bit i: whether ask i + 1 is in the second PLL; the first ask is always in the first.
    for split in 1u32..1 << (asks.len() - 1) {
        let second = |i: usize| i > 0 && split >> (i - 1) & 1 == 1;
        if asks.iter().enumerate().any(|(i, a)| second(i) && a.phase_mdeg != 0) {
            continue;
        }
        let mut plans = Vec::new();
        for half in [false, true] {
            let members: Vec<usize> = (0..asks.len()).filter(|&i| second(i) == half).collect();
            let group: Vec<ClockAsk> = members.iter().filter_map(|&i| asks.get(i).copied()).collect();
            if let Ok(mut plan) = solve(limits, input_hz, &group) {
                for output in &mut plan.outputs {
                    output.ask = output.ask.and_then(|a| members.get(a).copied());
                }
                plans.push(plan);
            }
        }
        if plans.len() < 2 {
            continue;
        }
        let worst = plans.iter().map(|p| p.worst_ppm(asks)).fold(0.0, f64::max);
        let kept = |plans: &[PllPlan]| plans.first().map_or(0, |p| p.outputs.len());
        let better = best.as_ref().is_none_or(|(w, p)| worst < *w || (worst == *w && kept(&plans) > kept(p)));
        if better {
            best = Some((worst, plans));
        }
    }
    best.map(|(_, plans)| plans).ok_or(first)
}

/// Says which clock is missed.
fn miss(limits: &PllLimits, input_hz: u64, asks: &[ClockAsk], best: Option<&Candidate>) -> PllMiss {
    let clock = |ask: usize, asked: ClockAsk, hz: Option<Hz>, alone: bool| PllMiss::Clock {
        ask,
        asked,
        nearest_hz: hz.map_or(0, Hz::round),
        off_ppm: hz.map_or(0.0, |hz| Error::of(hz, asked.hz).ppm()),
        alone,
    };
    // A clock that cannot be had even alone is the clearest answer.
    for (index, ask) in asks.iter().enumerate() {
        let alone = search(limits, input_hz, std::slice::from_ref(ask));
        let output = alone.as_ref().and_then(|c| c.plan.output_of(0));
        match output {
            Some(o) if Error::of(o.hz, ask.hz).within_ppm(ask.tolerance_ppm) => {
                let apart = o.phase_mdeg.abs_diff(wrap_phase(ask.phase_mdeg));
                if apart.min(360_000 - apart.min(360_000)) > PHASE_TOLERANCE_MDEG {
                    return PllMiss::Phase { ask: index, asked: *ask, nearest_mdeg: o.phase_mdeg };
                }
            }
            other => return clock(index, *ask, other.map(|o| o.hz), true),
        }
    }
    let worst = |c: &Candidate| {
        let errors = asks.iter().enumerate().filter_map(|(i, ask)| Some((i, *ask, c.plan.output_of(i)?)));
        errors.max_by(|a, b| Error::of(a.2.hz, a.1.hz).compare(Error::of(b.2.hz, b.1.hz))).map(|(i, ask, o)| (i, ask, *o))
    };
    match best.and_then(worst) {
        Some((index, ask, output)) if Error::of(output.hz, ask.hz).within_ppm(ask.tolerance_ppm) => {
            PllMiss::Phase { ask: index, asked: ask, nearest_mdeg: output.phase_mdeg }
        }
        Some((index, ask, output)) => clock(index, ask, Some(output.hz), false),
        None => match asks.first() {
            Some(ask) => clock(0, *ask, None, false),
            None => PllMiss::TooMany { asked: 0, outputs: limits.outputs as usize },
        },
    }
}

/// The best candidate, within the tolerances or not.
fn search(limits: &PllLimits, input_hz: u64, asks: &[ClockAsk]) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    let step = if limits.fractional { 1 } else { 8 };
    for input_div in limits.input_div.0.max(1)..=limits.input_div.1 {
        let pfd = Hz::new(u128::from(input_hz), u128::from(input_div));
        if !pfd.within(limits.pfd_hz) {
            continue;
        }
        // VCO = PFD x total / 8. For the ECP5 `total` is the product of the feedback divider and the feedback output's.
        let (low, high) = match limits.style {
            PllStyle::Mmcm => (limits.feedback_eighths.0, limits.feedback_eighths.1),
            PllStyle::Ehxplll => (8, limits.feedback_eighths.1.saturating_mul(limits.output_eighths.1) / 8),
        };
        let reach = |hz: u64| (u128::from(hz) * 8 * pfd.den, pfd.num.max(1));
        let ((low_num, unit), (high_num, _)) = (reach(limits.vco_hz.0), reach(limits.vco_hz.1));
        let low = low.max(u32::try_from(low_num.div_ceil(unit)).unwrap_or(u32::MAX)).next_multiple_of(step);
        let high = high.min(u32::try_from(high_num / unit).unwrap_or(u32::MAX));
        for total in (low..=high).step_by(step as usize) {
            let vco = Hz::new(pfd.num * u128::from(total), pfd.den * 8);
            if vco.within(limits.vco_hz) {
                outputs(limits, asks, Frame { input_hz, input_div, pfd, vco, total }, &mut best);
            }
        }
    }
    best
}

/// Input, phase detector and VCO of a candidate.
#[derive(Clone, Copy)]
struct Frame {
    input_hz: u64,
    input_div: u32,
    pfd: Hz,
    vco: Hz,
    total: u32,
}

/// Tries every arrangement of the outputs for one VCO.
fn outputs(limits: &PllLimits, asks: &[ClockAsk], frame: Frame, best: &mut Option<Candidate>) {
    let Some(whole) = asks.iter().map(|ask| limits.best_divider(frame.vco, *ask, 8)).collect::<Option<Vec<_>>>() else { return };
    match limits.style {
        PllStyle::Mmcm => {
            consider(limits, asks, frame, frame.total, &order(&whole, None), false, best);
            if limits.fractional {
                // Output 0 may have a divider with eighths: try each clock there.
                for (index, ask) in asks.iter().enumerate() {
                    if let Some(fine) = limits.best_divider(frame.vco, *ask, 1) {
                        consider(limits, asks, frame, frame.total, &order(&whole, Some((index, fine))), false, best);
                    }
                }
            }
        }
        PllStyle::Ehxplll => {
            let total = frame.total / 8;
            let feedback_of = |divider: u32| {
                let feedback = total.checked_div(divider).filter(|f| f * divider == total)?;
                (limits.feedback_eighths.0..=limits.feedback_eighths.1).contains(&feedback.checked_mul(8)?).then_some(feedback * 8)
            };
            let Some((low, high)) = limits.divider_range(frame.vco, 8) else { return };
            for divider in low as u32..=high as u32 {
                let Some(feedback) = feedback_of(divider) else { continue };
                for (index, ask) in asks.iter().enumerate() {
                    let forced = choice(frame.vco, divider * 8, *ask);
                    consider(limits, asks, frame, feedback, &order(&whole, Some((index, forced))), false, best);
                }
                if asks.len() < limits.outputs as usize {
                    let spare = ClockAsk { hz: 1, tolerance_ppm: 0, phase_mdeg: 0 };
                    let mut list = vec![(None, choice(frame.vco, divider * 8, spare))];
                    list.extend(order(&whole, None));
                    consider(limits, asks, frame, feedback, &list, true, best);
                }
            }
        }
    }
}

/// The choices in the order of the outputs, with one of them (replaced) at output 0.
fn order(choices: &[Choice], first: Option<(usize, Choice)>) -> Vec<(Option<usize>, Choice)> {
    let mut list: Vec<(Option<usize>, Choice)> = first.map(|(i, c)| (Some(i), c)).into_iter().collect();
    list.extend(choices.iter().enumerate().filter(|(i, _)| first.is_none_or(|(f, _)| f != *i)).map(|(i, c)| (Some(i), *c)));
    list
}

/// Keeps a candidate if it is better than the best so far.
fn consider(
    limits: &PllLimits,
    asks: &[ClockAsk],
    frame: Frame,
    feedback_eighths: u32,
    list: &[(Option<usize>, Choice)],
    spare: bool,
    best: &mut Option<Candidate>,
) {
    let (mut error, mut phase_error, mut within) = (Error::NONE, 0, true);
    for (index, choice) in list {
        let Some(ask) = index.and_then(|i| asks.get(i)) else { continue };
        error = error.max(choice.error);
        phase_error = phase_error.max(choice.phase_error);
        within &= choice.error.within_ppm(ask.tolerance_ppm) && choice.phase_error <= PHASE_TOLERANCE_MDEG;
    }
    if let Some(best) = best {
        // Cheap tests first: most candidates end here.
        let early = best.within.cmp(&within).reverse().then_with(|| best.error.compare(error));
        if early == Ordering::Less {
            return;
        }
    }
    let middle = (u128::from(limits.vco_hz.0) + u128::from(limits.vco_hz.1)) * frame.vco.den;
    let middle_off = Hz::new((frame.vco.num * 2).abs_diff(middle), frame.vco.den * 2);
    let outputs = (0..)
        .zip(list)
        .map(|(port, (ask, c))| PllOutput {
            ask: *ask,
            port,
            divider_eighths: c.eighths,
            shift_eighths: c.shift,
            hz: c.hz,
            phase_mdeg: c.phase_mdeg,
        })
        .collect();
    let Frame { input_hz, input_div, pfd, vco, .. } = frame;
    let plan = PllPlan { style: limits.style, input_hz, input_div, feedback_eighths, pfd, vco, outputs };
    let candidate = Candidate { plan, error, phase_error, within, middle_off, spare };
    if best.as_ref().is_none_or(|b| candidate.compare(b) == Ordering::Less) {
        *best = Some(candidate);
    }
}

#[cfg(test)]
#[path = "pll_tests.rs"]
mod tests;
