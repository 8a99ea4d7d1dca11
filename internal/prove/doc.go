// Package prove is the job that finds out which behaviours are guarded by a
// test: it prepares a suite (baselines, null run, planted failure), tries probes
// against the tests that reach a target, and confirms every kill in fresh
// processes before a certificate is derived.
//
// Words: a target is a symbol to be measured; an attempt is what was tried on
// it; today is the set of digests against which stored certificates are live or
// stale.
//
// The package decides which run is made next and stops there: verdicts are
// derived by package evidence, runs are made by a [lang.Suite], and storing,
// queueing and showing belong to package app.
package prove
