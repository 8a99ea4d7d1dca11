// Package e2e holds what is tested on the whole product: the binary is built
// once and driven as a user drives it, on real repositories, killed, damaged
// and run twice. It has no code of its own besides tests.
//
// PROVETO_LONG=1 makes the random tests as long as a release needs them;
// PROVETO_SEED=N draws the same moments and places again.
package e2e
