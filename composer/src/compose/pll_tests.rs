//! The PLL search against a brute force that shares nothing with it but the limits.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::manifest::family::Family;

fn limits(family: &str, speed: &str) -> PllLimits {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../boards/families/{family}.toml"));
    match Family::load(&path) {
        Ok(family) => family.plls.get(speed).cloned().expect("the grade has a PLL"),
        Err(found) => panic!("{:?}", found.0),
    }
}

fn ask(mhz: f64) -> ClockAsk {
    ClockAsk { hz: (mhz * 1e6) as u64, tolerance_ppm: 0, phase_mdeg: 0 }
}

/// Everything that a plan promises, recomputed from its dividers alone.
fn check(limits: &PllLimits, input_hz: u64, asks: &[ClockAsk], plan: &PllPlan) {
    let within = |num: u128, den: u128, range: (u64, u64)| num >= u128::from(range.0) * den && num <= u128::from(range.1) * den;
    let (div, fb) = (u128::from(plan.input_div), u128::from(plan.feedback_eighths));
    assert!((limits.input_div.0..=limits.input_div.1).contains(&plan.input_div));
    assert!((limits.feedback_eighths.0..=limits.feedback_eighths.1).contains(&plan.feedback_eighths));
    assert!(limits.fractional || plan.feedback_eighths.is_multiple_of(8), "whole feedback");
    let input = u128::from(input_hz);
    assert!(within(input, div, limits.pfd_hz), "PFD");
    let first = plan.outputs.first().expect("an output");
    assert_eq!(first.port, 0);
    let (num, den) = match limits.style {
        PllStyle::Mmcm => (input * fb, div * 8),
        PllStyle::Ehxplll => (input * fb * u128::from(first.divider_eighths), div * 64),
    };
    assert!(within(num, den, limits.vco_hz), "VCO {} / {}", num, den);
    assert!(plan.vco == Hz { num, den }, "the VCO is what the dividers make");
    for output in &plan.outputs {
        let eighths = output.divider_eighths;
        assert!((limits.output_eighths.0..=limits.output_eighths.1).contains(&eighths), "divider {eighths}");
        assert!(eighths % 8 == 0 || limits.fractional && output.port == 0, "only output 0 has eighths");
        assert!(within(num * 8, den * u128::from(eighths), limits.output_hz), "output range");
        assert!(output.hz == Hz { num: num * 8, den: den * u128::from(eighths) });
        assert!(output.shift_eighths < eighths && output.port < limits.outputs);
    }
    for (index, ask) in asks.iter().enumerate() {
        assert_eq!(plan.outputs.iter().filter(|o| o.ask == Some(index)).count(), 1, "each clock once");
        let output = plan.output_of(index).expect("answered");
        let off = output.hz.num.abs_diff(u128::from(ask.hz) * output.hz.den) * 1_000_000;
        assert!(off <= u128::from(ask.hz) * output.hz.den * u128::from(ask.tolerance_ppm), "{ask:?} off: {output:?}");
    }
    let mut ports: Vec<u32> = plan.outputs.iter().map(|o| o.port).collect();
    ports.dedup();
    assert_eq!(ports.len(), plan.outputs.len());
}

/// Smallest worst error of all settings in which every clock is within its tolerance, as a fraction; loops over everything.
fn brute(limits: &PllLimits, input_hz: u64, asks: &[ClockAsk]) -> Option<(u128, u128)> {
    let step = if limits.fractional { 1 } else { 8 };
    let mut best: Option<(u128, u128)> = None;
    let less = |a: (u128, u128), b: (u128, u128)| a.0 * b.1 < b.0 * a.1;
    let all = |from: u32, to: u32, step: u32| (from..=to).filter(move |v| v % step == 0);
    for div in limits.input_div.0..=limits.input_div.1 {
        for fb in all(limits.feedback_eighths.0, limits.feedback_eighths.1, step) {
            for out0 in all(limits.output_eighths.0, limits.output_eighths.1, step) {
                let pfd = (u128::from(input_hz), u128::from(div));
                let vco = match limits.style {
                    PllStyle::Mmcm => (pfd.0 * u128::from(fb), pfd.1 * 8),
                    PllStyle::Ehxplll => (pfd.0 * u128::from(fb) * u128::from(out0), pfd.1 * 64),
                };
                let within = |v: (u128, u128), r: (u64, u64)| v.0 >= u128::from(r.0) * v.1 && v.0 <= u128::from(r.1) * v.1;
                let output = |eighths: u32| (vco.0 * 8, vco.1 * u128::from(eighths));
                if !within(pfd, limits.pfd_hz) || !within(vco, limits.vco_hz) || !within(output(out0), limits.output_hz) {
                    continue;
                }
                let error = |eighths: u32, ask: &ClockAsk| {
                    let (num, den) = output(eighths);
                    let want = u128::from(ask.hz) * den;
                    let error = (num.abs_diff(want), want);
                    (error.0 * 1_000_000 <= error.1 * u128::from(ask.tolerance_ppm)).then_some(error)
                };
                // Who has output 0: one of the clocks, or (for the ECP5, if there is room) nobody.
                let holders = (0..asks.len()).map(Some).chain((asks.len() < limits.outputs as usize).then_some(None));
                for holder in holders {
                    let mut worst = Some((0, 1));
                    for (index, ask) in asks.iter().enumerate() {
                        let found = if holder == Some(index) {
                            error(out0, ask)
                        } else {
                            all(limits.output_eighths.0, limits.output_eighths.1, 8)
                                .filter(|&e| within(output(e), limits.output_hz))
                                .filter_map(|e| error(e, ask))
                                .reduce(|a, b| if less(b, a) { b } else { a })
                        };
                        worst = worst.zip(found).map(|(w, f)| if less(w, f) { f } else { w });
                    }
                    if let Some(worst) = worst
                        && best.is_none_or(|b| less(worst, b))
                    {
                        best = Some(worst);
                    }
                }
            }
        }
    }
    best
}

fn small_limits() -> impl Strategy<Value = PllLimits> {
    (any::<bool>(), 1u32..5, 2u32..9, 3u32..12, 1u32..4).prop_map(|(mmcm, div, fb, out, outputs)| PllLimits {
        style: if mmcm { PllStyle::Mmcm } else { PllStyle::Ehxplll },
        input_hz: (8_000_000, 100_000_000),
        pfd_hz: (10_000_000, 60_000_000),
        vco_hz: (200_000_000, 500_000_000),
        output_hz: (10_000_000, 300_000_000),
        input_div: (1, div),
        feedback_eighths: (8, fb * 8),
        output_eighths: (8, out * 8),
        outputs,
        fractional: mmcm && fb % 2 == 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn as_good_as_brute_force(
        limits in small_limits(),
        input in 8u64..100,
        wanted in prop::collection::vec((12u64..300, prop::sample::select(vec![0u32, 1000, 20_000, 100_000])), 1..4),
    ) {
        let asks: Vec<ClockAsk> = wanted.iter().map(|(mhz, ppm)| ClockAsk { hz: mhz * 1_000_000, tolerance_ppm: *ppm, phase_mdeg: 0 }).collect();
        let input_hz = input * 1_000_000;
        match solve(&limits, input_hz, &asks) {
            Ok(plan) => {
                check(&limits, input_hz, &asks, &plan);
                let worst = asks.iter().enumerate().map(|(i, a)| Error::of(plan.output_of(i).expect("answered").hz, a.hz)).fold(Error::NONE, Error::max);
                let (num, den) = brute(&limits, input_hz, &asks).expect("brute force finds what the search finds");
                prop_assert_eq!(worst.compare(Error { num, den }), Ordering::Equal, "{:?} against {}/{}", worst, num, den);
            }
            Err(_) if asks.len() > limits.outputs as usize => {}
            Err(miss) => prop_assert!(brute(&limits, input_hz, &asks).is_none(), "brute force finds settings, the search says {miss}"),
        }
    }

    #[test]
    fn no_input_panics(input in any::<u64>(), wanted in prop::collection::vec((any::<u64>(), any::<u32>(), any::<i32>()), 0..6)) {
        let asks: Vec<ClockAsk> = wanted.iter().map(|&(hz, tolerance_ppm, phase_mdeg)| ClockAsk { hz, tolerance_ppm, phase_mdeg }).collect();
        for (family, speed) in [("ecp5", "6"), ("xcu", "-2")] {
            let limits = limits(family, speed);
            let input_hz = limits.input_hz.0 + input % (limits.input_hz.1 - limits.input_hz.0 + 1);
            if let Ok(plan) = solve(&limits, input_hz, &asks) {
                if !asks.is_empty() {
                    check(&limits, input_hz, &asks, &plan);
                }
            }
        }
    }
}

#[test]
fn the_clocks_of_the_colorlight_i5() {
    let ecp5 = limits("ecp5", "6");
    let plan = solve(&ecp5, 25_000_000, &[ask(75.0), ask(125.0)]).expect("25 MHz makes 75 and 125 MHz");
    check(&ecp5, 25_000_000, &[ask(75.0), ask(125.0)], &plan);
    assert_eq!(plan.vco.to_string(), "750 MHz");
    assert_eq!(plan.output_of(0).map(|o| o.hz.to_string()), Some("75 MHz".into()));
    assert_eq!(plan.output_of(1).map(|o| o.hz.to_string()), Some("125 MHz".into()));

    let quarter = ClockAsk { phase_mdeg: 90_000, ..ask(125.0) };
    let asks = [ask(62.5), ask(125.0), quarter];
    let plan = solve(&ecp5, 25_000_000, &asks).expect("and 62.5 MHz and 125 MHz in two phases");
    check(&ecp5, 25_000_000, &asks, &plan);
    assert_eq!(plan.pfd.to_string(), "25 MHz");
    let shifted = plan.output_of(2).expect("answered");
    assert_eq!(shifted.phase_mdeg, 90_000);
    // A quarter of the divider, as coarse and fine steps: 625 MHz / 5 is shifted by 1.25 VCO periods.
    assert_eq!((plan.vco.to_string(), shifted.divider_eighths, shifted.shift_eighths), ("625 MHz".into(), 40, 10));
    assert_eq!((shifted.cphase(), shifted.fphase()), (0, 2));
    assert_eq!(plan.output_of(1).map(|o| (o.cphase(), o.fphase())), Some((4, 0)));
}

#[test]
fn of_equal_errors_the_highest_phase_detector_wins() {
    // 100 MHz makes 50 MHz with every input divider from 1 to 10.
    let plan = solve(&limits("ecp5", "8"), 100_000_000, &[ask(50.0)]).expect("50 MHz");
    assert_eq!(plan.input_div, 1);
    assert_eq!(plan.vco.to_string(), "600 MHz", "in the middle of 400 to 800");
}

#[test]
fn four_clocks_fit_one_ecp5_pll_and_five_need_two() {
    let ecp5 = limits("ecp5", "6");
    let mut asks = vec![ask(50.0), ask(75.0), ask(125.0), ask(62.5)];
    let loose: Vec<ClockAsk> = asks.iter().map(|a| ClockAsk { tolerance_ppm: 50_000, ..*a }).collect();
    check(&ecp5, 25_000_000, &loose, &solve(&ecp5, 25_000_000, &loose).expect("four clocks within 5 %"));
    asks.push(ask(100.0));
    assert_eq!(solve(&ecp5, 25_000_000, &asks), Err(PllMiss::TooMany { asked: 5, outputs: 4 }));
    let plans = solve_all(&ecp5, 2, 25_000_000, &asks).expect("two PLLs make all five exactly");
    assert_eq!(plans.len(), 2);
    let mut answered: Vec<usize> = plans.iter().flat_map(|p| p.outputs.iter().filter_map(|o| o.ask)).collect();
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3, 4]);
    for output in plans.iter().flat_map(|p| &p.outputs) {
        if let Some(index) = output.ask {
            assert_eq!(output.hz.round(), asks[index].hz);
        }
    }
}

#[test]
fn an_mmcm_makes_322_265625_mhz_from_125() {
    // 322.265625 / 125 = 165 / 64: only the eighths of output 0 or of the feedback come near.
    let xcu = limits("xcu", "-2");
    let wanted = ClockAsk { tolerance_ppm: 100, ..ask(322.265625) };
    let plan = solve(&xcu, 125_000_000, &[wanted, ask(156.25)]).expect("within 100 ppm");
    check(&xcu, 125_000_000, &[wanted, ask(156.25)], &plan);
}

#[test]
fn a_miss_names_the_nearest_frequency() {
    let ecp5 = limits("ecp5", "6");
    match solve(&ecp5, 25_000_000, &[ask(75.0), ask(123.0)]) {
        Err(miss @ PllMiss::Clock { ask: 1, nearest_hz, .. }) => {
            assert!(nearest_hz.abs_diff(123_000_000) < 3_000_000, "{nearest_hz}");
            assert!(miss.to_string().contains("123 MHz cannot be reached"), "{miss}");
        }
        other => panic!("{other:?}"),
    }
    match solve(&ecp5, 25_000_000, &[ask(500.0)]) {
        Err(PllMiss::Clock { alone: true, nearest_hz: 400_000_000, .. }) => {}
        other => panic!("{other:?}"),
    }
    match solve(&ecp5, 25_000_000, &[ask(75.0), ClockAsk { hz: u64::MAX, ..ask(1.0) }]) {
        Err(PllMiss::Clock { ask: 1, alone: true, nearest_hz: 400_000_000, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(solve(&ecp5, 1_000_000, &[ask(50.0)]), Err(PllMiss::Input { .. })));
    // 400 MHz is VCO / 1 or VCO / 2: steps of 45 or 22.5 degrees.
    let odd = ClockAsk { phase_mdeg: 56_000, ..ask(400.0) };
    assert!(matches!(solve(&ecp5, 25_000_000, &[odd]), Err(PllMiss::Phase { .. })), "{:?}", solve(&ecp5, 25_000_000, &[odd]));
}

/// `io::pll` of a family, emitted alone.
fn emitted(family: &str) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("hdl/io/{family}/pll.veryl"));
    let text = std::fs::read_to_string(&path).expect("the wrapper is there");
    let source = crate::hdl::Source { project: "io".into(), path: format!("io/{family}/pll.veryl"), text: text.clone(), library: false };
    match crate::hdl::compile("io", &[source], &[]) {
        Ok(compiled) => (text, compiled.files.into_iter().map(|f| f.text).collect()),
        Err(messages) => panic!("{family}: {messages:?}"),
    }
}

#[test]
fn the_wrappers_take_what_a_plan_gives() {
    for (family, speed, primitive) in [("ecp5", "6", "EHXPLLL"), ("xc7", "-1", "MMCME2_BASE"), ("xcu", "-2", "MMCME3_BASE")] {
        let plan = solve(&limits(family, speed), 125_000_000, &[ask(125.0)]).expect("125 MHz out of 125 MHz");
        let (veryl, verilog) = emitted(family);
        assert!(verilog.contains(primitive), "{family}");
        let names: Vec<String> = plan.parameters().into_iter().map(|(name, _)| name).collect();
        for name in &names {
            assert!(verilog.contains(&format!("parameter int unsigned {name}")), "{family} lacks the parameter {name}");
        }
        assert_eq!(veryl.matches("param ").count(), names.len(), "{family} has parameters that no plan gives");
        for port in 0..if family == "ecp5" { 4 } else { 7 } {
            assert!(veryl.contains(&format!("clk{port}: output logic")), "{family} lacks clk{port}");
        }
    }
}
