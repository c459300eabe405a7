//! Lists of random steps, each on a connection of its own: made, and where one fails shrunk to the least that fails, by proptest.

use super::Scope;
use super::ground::Ground;
use super::step::{HARMS, KINDS, Step};
use crate::live::Wire;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::RefCell;
use std::io;

/// Steps of a list.
const LONGEST: usize = 64;

/// Lists that are tried while one is made smaller.
const SHRINKS: u32 = 400;

/// # Errors
/// Those of the wire.
pub fn run<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    if let Some(steps) = &scope.replay {
        let failed = list(ground, steps)?;
        ground.found.mismatches.extend(failed);
        return Ok(());
    }
    let config = Config { cases: scope.cases, failure_persistence: None, max_shrink_iters: SHRINKS, ..Config::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&scope.seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    // Every second step is right.
    let step = (0..KINDS, 0..2 * HARMS, proptest::num::u64::ANY).prop_map(|(kind, harm, seed)| Step { kind, harm, seed });
    let ground = RefCell::new(ground);
    let broken = RefCell::new(None);
    let result = runner.run(&proptest::collection::vec(step, 1..=LONGEST), |steps| match list(&mut ground.borrow_mut(), &steps) {
        Ok(None) => Ok(()),
        Ok(Some(text)) => Err(TestCaseError::fail(text)),
        Err(error) => {
            let text = error.to_string();
            broken.borrow_mut().get_or_insert(error);
            Err(TestCaseError::fail(text))
        }
    });
    if let Some(error) = broken.into_inner() {
        return Err(error);
    }
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, steps)) => {
            let steps = steps.iter().map(Step::to_string).collect::<Vec<_>>().join(",");
            ground.into_inner().found.mismatches.push(format!("seed {}, the least list that fails is {steps}: {reason}", scope.seed));
            Ok(())
        }
        Err(TestError::Abort(reason)) => Err(super::super::wrong(reason.to_string())),
    }
}

/// One list on a new connection; what differed, if anything did.
fn list<W: Wire>(ground: &mut Ground<W>, steps: &[Step]) -> io::Result<Option<String>> {
    ground.close()?;
    ground.bout()?;
    let mut aim = ground.offer.address;
    for step in steps {
        if ground.over() {
            break;
        }
        let (frame, at) = step.frame(ground)?;
        aim = at;
        ground.put(&format!("step {step}"), &frame)?;
    }
    ground.prove(aim)?;
    ground.close()?;
    let failed = std::mem::take(&mut ground.found.mismatches);
    Ok(failed.into_iter().next())
}
